// Destinations of the account: verification, rates, and actions.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { DestinationView } from "../../types.ts";
import { call } from "../api.ts";
import { done } from "../call-readers.ts";
import { Ago, Badge, Empty, Fact, Failure, Loading, Panel } from "../components/basics.tsx";
import { CopyButton } from "../components/copy-button.tsx";
import { Confirm } from "../components/dialog.tsx";
import { Sparkline } from "../components/sparkline.tsx";
import { useAction, useSessionContext, useTopic } from "../hooks.ts";
import { displayText } from "../timeline.ts";
import { count, counted, rate } from "../units.ts";
import { AddDialog, ProveDialog } from "./destination-dialogs.tsx";

/** Verification state and its expiry. */
function Proof({ destination }: { readonly destination: DestinationView }): JSX.Element {
  const { state, provedBy, provedAt, proofEndsAt, pauseReason, pausedAt, refusal } = destination;
  if (refusal !== null) return <>not sending: {refusal}</>;
  if (state === "paused" && pausedAt !== null) {
    return (
      <>
        paused <Ago iso={pausedAt} />: {displayText(pauseReason ?? "unknown")}
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

/** Counters of this node's sending to the destination. */
function Sending({ destination }: { readonly destination: DestinationView }): JSX.Element {
  const { live } = useSessionContext();
  const { sending, id } = destination;
  if (!sending) return <Fact name="Sent by this node">no shreds at present</Fact>;
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
        <span class="number">{count(sending.failed)}</span>
      </Fact>
      <Fact name="Unreachable">
        <span class="number" title="ICMP errors received for this destination">
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

function Card({ destination, onProve, onRemove }: CardProps): JSX.Element {
  const { announce } = useSessionContext();
  const action = useAction();
  const { id, address, region, state } = destination;
  const challenge = () =>
    action.run(async () => {
      await call("challengeDestination", [id], done);
      announce(`The service sends three challenges to ${address}: now, in 2 s and in 10 s.`);
    });
  return (
    <li class="card">
      <div class="card-head">
        <code class="title">{address}</code>
        <CopyButton text={address} what={`address ${address}`} />
        <Badge state={state} />
        <div class="buttons">
          <button type="button" disabled={action.isBusy} onClick={() => void challenge()}>
            Send challenge<span class="hidden"> {address}</span>
          </button>
          <button type="button" onClick={onProve}>
            Enter token<span class="hidden"> for {address}</span>
          </button>
          <button type="button" class="danger quiet" onClick={onRemove}>
            Remove<span class="hidden"> {address}</span>
          </button>
        </div>
      </div>
      <Failure message={action.failure} />
      <dl class="facts">
        <Fact name="Region">{region}</Fact>
        <Fact name="Verified">
          <Proof destination={destination} />
        </Fact>
        <Sending destination={destination} />
        <Fact name="Id">
          <code>{id}</code>
        </Fact>
      </dl>
    </li>
  );
}

type Open =
  | { readonly kind: "add" }
  | { readonly kind: "prove" | "remove"; readonly destination: DestinationView };

function OpenDialog({ open, close }: { open: Open; close: () => void }): JSX.Element {
  const { announce } = useSessionContext();
  if (open.kind === "add") return <AddDialog onClose={close} />;
  const { id, address } = open.destination;
  if (open.kind === "prove") return <ProveDialog id={id} address={address} onClose={close} />;
  const remove = async () => {
    await call("removeDestination", [id], done);
    announce(`Removed ${address}.`);
  };
  return (
    <Confirm title={`Remove ${address}?`} verb="Remove" onClose={close} work={remove}>
      <p>The service stops sending shreds to it at once. To resume, add and verify it again.</p>
    </Confirm>
  );
}

export function DestinationsPanel(): JSX.Element {
  const destinations = useTopic("destinations");
  const most = useTopic("service")?.destinationsMax;
  const [open, setOpen] = useState<Open | null>(null);
  const aside = (
    <>
      {destinations && most !== undefined
        ? `${destinations.length} of ${counted(most, "destination")}`
        : null}{" "}
      <button type="button" class="primary" onClick={() => setOpen({ kind: "add" })}>
        Add a destination
      </button>
    </>
  );
  return (
    <Panel title="Destinations" wide aside={aside}>
      {destinations === undefined ? <Loading /> : null}
      {destinations?.length === 0 ? (
        <Empty>
          No destinations yet. Add the <code>ip:port</code> of your receiver. It gets shreds once it
          is verified and the account has a tier.
        </Empty>
      ) : null}
      <ul class="cards">
        {destinations?.map((destination) => (
          <Card
            key={destination.id}
            destination={destination}
            onProve={() => setOpen({ kind: "prove", destination })}
            onRemove={() => setOpen({ kind: "remove", destination })}
          />
        ))}
      </ul>
      {open ? <OpenDialog open={open} close={() => setOpen(null)} /> : null}
    </Panel>
  );
}
