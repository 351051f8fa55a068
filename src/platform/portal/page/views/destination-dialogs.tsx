// Dialogs of destinations: add one, and verify one manually.

import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import { call } from "../api.ts";
import { done } from "../call-readers.ts";
import { Snippet } from "../components/copy-button.tsx";
import { Dialog, DialogForm, dialogFailureId } from "../components/dialog.tsx";
import { fieldAttributes, refusedField } from "../components/refused-field.ts";
import { useAction, useSessionContext, useTopic } from "../hooks.ts";
import { captureCommand, listenCommand, pythonReceiver } from "../receiver-commands.ts";

interface RegionProps {
  readonly regions: readonly string[];
  readonly isRefused: boolean;
}

function RegionField({ regions, isRefused }: RegionProps): JSX.Element {
  const attributes = fieldAttributes(isRefused, dialogFailureId);
  return (
    <>
      <label for="region">Region</label>
      {regions.length === 0 ? (
        <input id="region" name="region" required autocomplete="off" {...attributes} />
      ) : (
        <select id="region" name="region" {...attributes}>
          {regions.map((region) => (
            <option key={region}>{region}</option>
          ))}
        </select>
      )}
    </>
  );
}

/** Regions in which the service delivers; empty before the first message. */
function useRegions(): readonly string[] {
  return useTopic("service")?.deliveryRegions ?? [];
}

function fieldOf(form: HTMLDivElement | null, name: string): string {
  const field = form?.querySelector<HTMLInputElement | HTMLSelectElement>(`[name="${name}"]`);
  return field?.value.trim() ?? "";
}

/** Commands of a receiver that answers challenges, for customers with and without the program. */
function ReceiverHelp({ address }: { readonly address: string }): JSX.Element {
  return (
    <>
      <Snippet text={listenCommand(address)} what="command of the receiver" />
      <details class="numbers">
        <summary>Without the program shredway</summary>
        <p class="muted small">
          Run this with Python 3. Or add the destination now, capture a challenge, and enter its
          token.
        </p>
        <Snippet text={pythonReceiver(address)} what="receiver in Python" />
      </details>
    </>
  );
}

export function AddDialog({ onClose }: { readonly onClose: () => void }): JSX.Element {
  const [typed, setTyped] = useState("");
  const [recovered, setRecovered] = useState(false);
  const { announce } = useSessionContext();
  const regions = useRegions();
  const fields = useRef<HTMLDivElement>(null);
  const action = useAction();
  const refused = refusedField(action, ["address", "region"]);
  const add = () => {
    const region = fieldOf(fields.current, "region");
    const address = fieldOf(fields.current, "address");
    return action.run(async () => {
      await call("addDestination", [{ region, address, recovered }], done);
      announce(`Added ${address}. The service sends it three challenges: now, in 2 s and in 10 s.`);
      onClose();
    });
  };
  return (
    <Dialog title="Add a destination" onClose={onClose}>
      <DialogForm verb="Add" action={action} onClose={onClose} onSubmit={() => void add()}>
        <div ref={fields} class="fields">
          <label for="address">Address</label>
          <input
            id="address"
            name="address"
            required
            autocomplete="off"
            spellcheck={false}
            placeholder="192.0.2.10:9001"
            {...fieldAttributes(refused === "address", dialogFailureId, "address-note")}
            onInput={({ currentTarget }) => setTyped(currentTarget.value)}
          />
          <p id="address-note" class="muted small">
            Address of your receiver (ip:port). Start the receiver first, so that it can answer the
            challenge:
          </p>
          <ReceiverHelp address={typed} />
          <RegionField regions={regions} isRefused={refused === "region"} />
          <label class="choice">
            <input
              type="checkbox"
              checked={recovered}
              onChange={({ currentTarget }) => setRecovered(currentTarget.checked)}
            />
            Also send recovered shreds (experimental)
          </label>
        </div>
      </DialogForm>
    </Dialog>
  );
}

interface ProveProps {
  readonly id: string;
  readonly address: string;
  readonly onClose: () => void;
}

export function ProveDialog({ id, address, onClose }: ProveProps): JSX.Element {
  const { announce } = useSessionContext();
  const fields = useRef<HTMLDivElement>(null);
  const action = useAction();
  const prove = () => {
    const token = fieldOf(fields.current, "token").replaceAll(/\s/g, "");
    return action.run(async () => {
      await call("proveDestination", [id, token], done);
      announce(`Verified ${address}.`);
      onClose();
    });
  };
  return (
    <Dialog title={`Verify ${address}`} onClose={onClose}>
      <DialogForm verb="Verify" action={action} onClose={onClose} onSubmit={() => void prove()}>
        <p>
          Use this if your receiver cannot answer challenges itself. Capture one challenge on the
          receiving machine. The token is the 16 bytes after <code>SWPROOF1</code>.
        </p>
        <Snippet text={captureCommand(address)} what="command to capture a challenge" />
        <div ref={fields} class="fields">
          <label for="token">Token, 32 hex digits</label>
          <input
            id="token"
            name="token"
            class="code"
            required
            autocomplete="off"
            spellcheck={false}
            placeholder="00112233445566778899aabbccddeeff"
            {...fieldAttributes(action.isInputRefused, dialogFailureId)}
          />
        </div>
      </DialogForm>
    </Dialog>
  );
}
