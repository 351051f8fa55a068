// Destinations of the account: the list, and the dialogs of its actions.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { DestinationView } from "../../types.ts";
import { call } from "../api.ts";
import { done } from "../call-readers.ts";
import { Empty, Loading, Panel } from "../components/basics.tsx";
import { Confirm } from "../components/dialog.tsx";
import { useSessionContext, useTopic } from "../hooks.ts";
import { counted } from "../units.ts";
import { DestinationCard } from "./destination-card.tsx";
import { AddDialog, ProveDialog } from "./destination-dialogs.tsx";

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
  const isFull = destinations !== undefined && most !== undefined && destinations.length >= most;
  const aside = (
    <>
      <span id="destinations-note">
        {destinations && most !== undefined
          ? `${destinations.length} of ${counted(most, "destination")}${isFull ? "; remove one to add another" : ""}`
          : null}
      </span>{" "}
      <button
        type="button"
        class="primary"
        disabled={isFull}
        aria-describedby="destinations-note"
        onClick={() => setOpen({ kind: "add" })}
      >
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
          <DestinationCard
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
