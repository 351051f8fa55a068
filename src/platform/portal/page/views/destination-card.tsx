// Card of one destination: its state, verification, sending and actions.

import type { JSX } from "preact";
import type { DestinationView } from "../../types.ts";
import { call } from "../api.ts";
import { done } from "../call-readers.ts";
import { Ago, Badge, Fact, Failure } from "../components/basics.tsx";
import { CopyButton } from "../components/copy-button.tsx";
import { Sparkline } from "../components/sparkline.tsx";
import { pauseText, shownState } from "../destination-state.ts";
import { useAction, useSessionContext, useTopic } from "../hooks.ts";
import { count, rate } from "../units.ts";

/** Verification state and its expiry. */
function Proof({ destination }: { readonly destination: DestinationView }): JSX.Element {
  const { state, provedBy, provedAt, proofEndsAt, pauseReason, pausedAt, refusal } = destination;
  if (refusal !== null) return <>not sending: {refusal}</>;
  if (state === "paused" && pausedAt !== null) {
    return (
      <>
        paused <Ago iso={pausedAt} />: {pauseText(pauseReason)}
      </>
    );
  }
  if (provedAt === null) return <>waiting for the answer to a challenge</>;
  return (
    <>
      by {provedBy} <Ago iso={provedAt} />
      {proofEndsAt === null ? (
        ", does not expire"
      ) : (
        <>
          , expires <Ago iso={proofEndsAt} />
        </>
      )}
    </>
  );
}

/** The customer's next step while no shreds arrive. */
function Remedy({ destination }: { readonly destination: DestinationView }): JSX.Element | null {
  const { sending, pauseReason, nextChallengeAt } = destination;
  const state = shownState(destination);
  if (state === "unreachable") {
    return (
      <p class="note warning">
        {count(sending?.icmpLastMinute ?? 0)} ICMP errors in the last minute: no receiver listens
        there. Start the receiver, or check its port and firewall.
      </p>
    );
  }
  if (pauseReason === "operator") return <p class="note warning">Ask the operator to resume it.</p>;
  if (state !== "paused" && state !== "unproved") return null;
  return (
    <p class="note warning">
      Start the receiver, then send a challenge now.
      {nextChallengeAt === null ? null : (
        <>
          {" "}
          The service also sends one <Ago iso={nextChallengeAt} />.
        </>
      )}
    </p>
  );
}

/** Counters of this node's sending to the destination. */
function Sending({ destination }: { readonly destination: DestinationView }): JSX.Element {
  const { live } = useSessionContext();
  const tier = useTopic("tier");
  const { sending, id, state } = destination;
  if (!sending) {
    const hasNoTier = state === "active" && tier !== undefined && tier.tier === null;
    return (
      <Fact name="Sent by this node">
        {hasNoTier ? "no shreds: the account has no tier" : "no shreds at present"}
      </Fact>
    );
  }
  return (
    <>
      <Fact name="Tier">{sending.tier}</Fact>
      <Fact name="Rate, last minute">
        <span class="rate">
          <Sparkline values={live.rates.of(id)} />
          <span class="number">{rate(sending.sentPerSecond)}</span>
        </span>
      </Fact>
      <Fact name="Sent">
        <span class="number">{count(sending.sent)}</span>
      </Fact>
      <Fact name="Failed">
        <span class={sending.failed > 0 ? "number alert" : "number"}>{count(sending.failed)}</span>
      </Fact>
      <Fact name="Unreachable">
        <span
          class={sending.icmpLastMinute > 0 ? "number alert" : "number"}
          title="ICMP errors received for this destination"
        >
          {count(sending.icmp)}
        </span>
      </Fact>
    </>
  );
}

interface CardProps {
  readonly destination: DestinationView;
  readonly onProve: () => void;
  readonly onRemove: () => void;
}

/** Less prominent while the destination is active: its proof is renewed automatically. */
function Buttons({ destination, onProve, onRemove, action }: CardProps & { action: Action }) {
  const { announce } = useSessionContext();
  const { id, address } = destination;
  const isActive = shownState(destination) === "active";
  const challenge = () =>
    action.run(async () => {
      await call("challengeDestination", [id], done);
      announce(`The service sends three challenges to ${address}: now, in 2 s and in 10 s.`);
    });
  return (
    <div class="buttons">
      <button
        type="button"
        class={isActive ? "quiet" : "primary"}
        disabled={action.isBusy}
        onClick={() => void challenge()}
      >
        {isActive ? "Send challenge" : "Send challenge now"}
        <span class="hidden"> {address}</span>
      </button>
      <button type="button" class={isActive ? "quiet" : ""} onClick={onProve}>
        Enter token<span class="hidden"> for {address}</span>
      </button>
      <button type="button" class="danger quiet" onClick={onRemove}>
        Remove<span class="hidden"> {address}</span>
      </button>
    </div>
  );
}

type Action = ReturnType<typeof useAction>;

function Recovered({ destination, action }: { destination: DestinationView; action: Action }) {
  const { announce } = useSessionContext();
  const { id, address, recovered } = destination;
  const toggle = () =>
    action.run(async () => {
      await call("updateDestination", [id, { recovered: !recovered }], done);
      announce(`Recovered shreds are ${recovered ? "off" : "on"} for ${address}.`);
    });
  return (
    <Fact name="Recovered shreds">
      {recovered ? "on" : "off"}{" "}
      <button
        type="button"
        class="quiet copy"
        disabled={action.isBusy}
        title="Experimental: also sends shreds that the relay recovered before they arrive"
        onClick={() => void toggle()}
      >
        Switch {recovered ? "off" : "on"}
        <span class="hidden"> recovered shreds for {address}</span>
      </button>
    </Fact>
  );
}

export function DestinationCard(props: CardProps): JSX.Element {
  const { destination } = props;
  const action = useAction();
  const { id, address, region } = destination;
  return (
    <li class="card">
      <div class="card-head">
        <code class="title">{address}</code>
        <CopyButton text={address} what={`address ${address}`} />
        <Badge state={shownState(destination)} />
        <Buttons {...props} action={action} />
      </div>
      <Failure message={action.failure} />
      <Remedy destination={destination} />
      <dl class="facts">
        <Fact name="Region">{region}</Fact>
        <Fact name="Verified">
          <Proof destination={destination} />
        </Fact>
        <Sending destination={destination} />
        <Recovered destination={destination} action={action} />
        <Fact name="Id">
          <code>{id}</code>
        </Fact>
      </dl>
    </li>
  );
}
