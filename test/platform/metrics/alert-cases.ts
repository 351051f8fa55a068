// Cases for each alert: the series of a healthy service, and one that differs.
//
// Values in promtool's notation: "a+bxn" begins at a and adds b for n intervals, "axn" is constant.

/** Series of a healthy service, ten seconds apart. */
export const wellSeries: Readonly<Record<string, string>> = {
  'up{job="shredway",instance="a"}': "1x400",
  'shredway_ready{job="shredway",instance="a"}': "1x400",
  'shredway_check_ok{job="shredway",instance="a",check="shreds"}': "1x400",
  'shredway_relay_sources{job="shredway",instance="a",tier="tier-1"}': "2x400",
  'shredway_relay_sources{job="shredway",instance="a",tier="tier-2"}': "0x400",
  'shredway_relay_packets_received_total{job="shredway",instance="a"}': "0+1000x400",
  'shredway_relay_packets_total{job="shredway",instance="a",verdict="first"}': "0+500x400",
  'shredway_relay_packets_total{job="shredway",instance="a",verdict="wrong_version"}': "0x400",
  'shredway_relay_source_received_total{job="shredway",instance="a",source="s",tier="tier-1"}':
    "0+500x400",
  'shredway_relay_receive_drops_total{job="shredway",instance="a"}': "7x400",
  'shredway_relay_latency_seconds_bucket{job="shredway",instance="a",le="0.000131071"}':
    "0+990x400",
  'shredway_relay_latency_seconds_bucket{job="shredway",instance="a",le="0.004194303"}':
    "0+1000x400",
  'shredway_relay_latency_seconds_bucket{job="shredway",instance="a",le="+Inf"}': "0+1000x400",
  'shredway_relay_worker_events_lost_total{job="shredway",instance="a",worker="0"}': "3x400",
  'shredway_relay_worker_deshred_lost_total{job="shredway",instance="a",worker="0"}': "3x400",
  'shredway_deshred_landings_lost_total{job="shredway",instance="a"}': "0x400",
  'shredway_relay_worker_clone_fallbacks_total{job="shredway",instance="a",worker="0"}': "5x400",
  'shredway_relay_authentication_enabled{job="shredway",instance="a"}': "1x400",
  'shredway_leader_schedule_in_force{job="shredway",instance="a"}': "1x400",
  'shredway_leader_schedule_last_slot{job="shredway",instance="a"}': "900000x400",
  'shredway_slot{job="shredway",instance="a"}': "100000+25x400",
  'shredway_slot_length_seconds{job="shredway",instance="a"}': "0.4x400",
  'shredway_slot_clock_known{job="shredway",instance="a"}': "1x400",
  'shredway_slot_clock_age_seconds{job="shredway",instance="a"}': "0.2x400",
  'shredway_relay_destination_sent_total{job="shredway",instance="a",destination="d",tier="tier-1"}':
    "0+500x400",
  'shredway_relay_destination_failed_total{job="shredway",instance="a",destination="d",tier="tier-1",reason="buffer_full"}':
    "0+1x400",
  'shredway_route_up{job="shredway",instance="a",route="r",kind="swqos"}': "1x400",
  'shredway_route_up{job="shredway",instance="a",route="t",kind="tpu"}': "1x400",
  'shredway_submissions_ended_total{job="shredway",instance="a",state="expired"}': "0+1x400",
  'shredway_submissions_ended_total{job="shredway",instance="a",state="landed"}': "0+50x400",
  'shredway_submissions_unwritten{job="shredway",instance="a"}': "10x400",
  'shredway_gateway_request_duration_seconds_bucket{job="shredway",instance="a",path="relay",le="0.1"}':
    "0+99x400",
  'shredway_gateway_request_duration_seconds_bucket{job="shredway",instance="a",path="relay",le="2.5"}':
    "0+99x400",
  'shredway_gateway_request_duration_seconds_bucket{job="shredway",instance="a",path="relay",le="+Inf"}':
    "0+99x400",
  'shredway_gateway_calls_total{job="shredway",instance="a",method="sendTransaction",reason="ok"}':
    "0+99x400",
  'shredway_gateway_calls_total{job="shredway",instance="a",method="sendTransaction",reason="internal"}':
    "1x400",
  'shredway_gateway_calls_total{job="shredway",instance="a",method="sendTransaction",reason="overloaded"}':
    "9x400",
  'shredway_store_reachable{job="shredway",instance="a"}': "1x400",
  'shredway_store_info{job="shredway",instance="a",database="postgres",node="a"}': "1x400",
  'shredway_store_info{job="shredway",instance="b",database="postgres",node="b"}': "1x400",
  'shredway_tier_leader{job="shredway",instance="a"}': "1x400",
  'shredway_tier_leader{job="shredway",instance="b"}': "0x400",
  'nodejs_eventloop_lag_seconds_bucket{job="shredway",instance="a",le="0.05"}': "0+200x400",
  'nodejs_eventloop_lag_seconds_bucket{job="shredway",instance="a",le="0.25"}': "0+200x400",
  'nodejs_eventloop_lag_seconds_bucket{job="shredway",instance="a",le="+Inf"}': "0+200x400",
  'process_open_fds{job="shredway",instance="a"}': "100x400",
  'process_max_fds{job="shredway",instance="a"}': "1024x400",
  'shredway_gateway_tls_certificate_expiry_seconds{job="shredway",instance="a"}': "7776000x400",
  'node_filesystem_avail_bytes{job="node",instance="a",fstype="ext4",mountpoint="/"}': "50x400",
  'node_filesystem_size_bytes{job="node",instance="a",fstype="ext4",mountpoint="/"}': "100x400",
};

export interface AlertCase {
  readonly alert: string;
  /** Unique prefix of a name in `wellSeries`, and its replacement values. */
  readonly bad: Readonly<Record<string, string>>;
  /** Other alerts that fire together with it. */
  readonly also?: readonly string[];
}

const shredsFlow = "0+500x30 15000x370";

export const alertCases: readonly AlertCase[] = [
  {
    alert: "ShredwayNoSources",
    bad: { 'shredway_relay_sources{job="shredway",instance="a",tier="tier-1"}': "0x400" },
  },
  {
    alert: "ShredwayWrongShredVersion",
    bad: {
      'shredway_relay_packets_total{job="shredway",instance="a",verdict="wrong_version"}':
        "0+90000x400",
    },
  },
  {
    alert: "ShredwayShredsStopped",
    bad: {
      'shredway_relay_packets_total{job="shredway",instance="a",verdict="first"}': shredsFlow,
    },
  },
  { alert: "ShredwaySourceSilent", bad: { shredway_relay_source_received_total: shredsFlow } },
  { alert: "ShredwayReceiveDrops", bad: { shredway_relay_receive_drops_total: "0+1x400" } },
  {
    alert: "ShredwayRelaySlow",
    bad: {
      'shredway_relay_latency_seconds_bucket{job="shredway",instance="a",le="0.000131071"}':
        "0+900x400",
    },
  },
  {
    alert: "ShredwayEventsLost",
    bad: { shredway_relay_worker_deshred_lost_total: "0+1x400" },
  },
  {
    alert: "ShredwayAuthenticationOff",
    bad: { shredway_relay_authentication_enabled: "0x400" },
  },
  { alert: "ShredwayNoSchedule", bad: { shredway_leader_schedule_in_force: "0x400" } },
  { alert: "ShredwayScheduleEnding", bad: { shredway_leader_schedule_last_slot: "110500x400" } },
  { alert: "ShredwaySlotClockUnknown", bad: { shredway_slot_clock_age_seconds: "0+10x400" } },
  {
    alert: "ShredwayDestinationFailing",
    bad: { shredway_relay_destination_failed_total: "0+20x400" },
  },
  {
    alert: "ShredwayCloneFallbacks",
    bad: { shredway_relay_worker_clone_fallbacks_total: "0+3x400" },
  },
  {
    alert: "ShredwayRouteDown",
    bad: { 'shredway_route_up{job="shredway",instance="a",route="r"': "0x400" },
  },
  {
    alert: "ShredwayAllRoutesDown",
    bad: {
      'shredway_route_up{job="shredway",instance="a",route="r"': "0x400",
      'shredway_route_up{job="shredway",instance="a",route="t"': "0x400",
    },
    also: ["ShredwayRouteDown"],
  },
  {
    alert: "ShredwaySubmissionsExpiring",
    bad: {
      'shredway_submissions_ended_total{job="shredway",instance="a",state="expired"}': "0+60x400",
    },
  },
  {
    alert: "ShredwayGatewaySlow",
    bad: {
      'shredway_gateway_request_duration_seconds_bucket{job="shredway",instance="a",path="relay",le="0.1"}':
        "0+50x400",
    },
  },
  {
    alert: "ShredwayGatewayErrors",
    bad: {
      'shredway_gateway_calls_total{job="shredway",instance="a",method="sendTransaction",reason="internal"}':
        "0+1x400",
    },
  },
  {
    alert: "ShredwayOverloaded",
    bad: {
      'shredway_gateway_calls_total{job="shredway",instance="a",method="sendTransaction",reason="overloaded"}':
        "0+1x400",
    },
  },
  { alert: "ShredwayDatabaseAway", bad: { shredway_store_reachable: "0x400" } },
  {
    alert: "ShredwayNoTierLeader",
    bad: { 'shredway_tier_leader{job="shredway",instance="a"}': "0x400" },
  },
  {
    alert: "ShredwayNoTierLeader",
    bad: { 'shredway_tier_leader{job="shredway",instance="b"}': "1x400" },
  },
  { alert: "ShredwayUnwritten", bad: { shredway_submissions_unwritten: "20000x400" } },
  { alert: "ShredwayDown", bad: { "up{": "0x400" } },
  { alert: "ShredwayNotReady", bad: { "shredway_ready{": "0x400" } },
  { alert: "ShredwayCheckFailing", bad: { shredway_check_ok: "0x400" } },
  {
    alert: "ShredwayEventLoopLag",
    bad: {
      'nodejs_eventloop_lag_seconds_bucket{job="shredway",instance="a",le="0.05"}': "0+100x400",
    },
  },
  { alert: "ShredwayFilesRunningOut", bad: { process_open_fds: "1000x400" } },
  {
    alert: "ShredwayCertificateExpiring",
    bad: { shredway_gateway_tls_certificate_expiry_seconds: "1209600x400" },
  },
  { alert: "ShredwayDiskFilling", bad: { node_filesystem_avail_bytes: "5x400" } },
];
