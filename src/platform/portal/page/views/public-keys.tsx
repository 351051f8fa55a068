// Public keys of the account: list, register and remove. Private keys never reach the page: the owner signs
// with the program shredway and pastes the result.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { RegisteredKey, RegisteredKeys } from "../../../../client/responses.ts";
import type { AnyState } from "../../types.ts";
import { ApiError, call } from "../api.ts";
import { done, registeredKeys } from "../call-readers.ts";
import { Badge, Empty, Fact, LoadedPart, NoScope, Panel, When } from "../components/basics.tsx";
import { CopyButton, Snippet } from "../components/copy-button.tsx";
import { Confirm, Dialog, DialogForm, dialogFailureId } from "../components/dialog.tsx";
import { fieldAttributes } from "../components/refused-field.ts";
import { useAction, useLoaded, useSessionContext } from "../hooks.ts";
import { counted } from "../units.ts";

type Item = AnyState<RegisteredKey>;

interface RegisteredKeysView extends Pick<RegisteredKeys, "account"> {
  readonly publicKeys: readonly Item[];
}

/** Purposes with their scopes, and who uses such a key for what. A narrow phone shows the whole text. */
const purposes = [
  { name: "shredstream", scope: "shreds", use: "ShredStream proxy (shreds)" },
  { name: "tpu", scope: "submit", use: "QUIC client (transactions)" },
] as const;

function loadPublicKeys(): Promise<RegisteredKeysView> {
  return call("getPublicKeys", [], registeredKeys);
}

/** The object that `shredway public-keys sign` prints. */
function parsed(text: string): object {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    value = null;
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
  throw new ApiError(
    400,
    "value_invalid",
    "The text is not a registration; expected the JSON object that the command prints.",
  );
}

interface RegisterProps {
  readonly account: string;
  readonly choices: readonly (typeof purposes)[number][];
  readonly onClose: () => void;
}

function RegisterDialog({ account, choices, onClose }: RegisterProps): JSX.Element {
  const { announce } = useSessionContext();
  const action = useAction();
  const [purpose, setPurpose] = useState<string>(choices[0]?.name ?? "");
  const [typed, setTyped] = useState("");
  const register = () =>
    action.run(async () => {
      await call("registerPublicKey", [parsed(typed)], done);
      announce("Registered the public key.");
      onClose();
    });
  const command = `shredway public-keys sign --account ${account} --purpose ${purpose} --key-file id.json`;
  return (
    <Dialog title="Register a public key" onClose={onClose}>
      <DialogForm
        verb="Register"
        action={action}
        onClose={onClose}
        onSubmit={() => void register()}
      >
        <div class="fields">
          <label for="purpose">Purpose</label>
          <select
            id="purpose"
            value={purpose}
            onChange={({ currentTarget }) => setPurpose(currentTarget.value)}
          >
            {choices.map(({ name, use }) => (
              <option key={name} value={name}>
                {use}
              </option>
            ))}
          </select>
          <p class="muted small">
            Run this on the machine that has the key file. It signs a text with the key, which never
            leaves that machine. The signature is valid for ten minutes.
          </p>
          <Snippet text={command} what="command that signs" />
          <label for="registration">Output of the command</label>
          <textarea
            id="registration"
            class="code"
            rows={4}
            required
            autocomplete="off"
            spellcheck={false}
            placeholder={'{"publicKey":"…","purpose":"…","expiresAt":"…","signature":"…"}'}
            onInput={({ currentTarget }) => setTyped(currentTarget.value)}
            {...fieldAttributes(action.isInputRefused, dialogFailureId)}
          />
        </div>
      </DialogForm>
    </Dialog>
  );
}

function RemoveDialog({ item, onClose }: { item: Item; onClose: () => void }): JSX.Element {
  const { announce } = useSessionContext();
  const short = item.publicKey.slice(0, 6);
  const remove = async () => {
    await call("removePublicKey", [item.publicKey], done);
    announce(`Removed ${short}….`);
  };
  return (
    <Confirm title={`Remove ${short}…?`} verb="Remove" onClose={onClose} work={remove}>
      <p>
        {item.purpose === "shredstream"
          ? "The service stops sending shreds to the proxy with this key within a second."
          : "The service closes the connections with this key within a second."}
        {" Another account can register it then."}
      </p>
    </Confirm>
  );
}

function Card({ item, onRemove }: { item: Item; onRemove: (() => void) | null }): JSX.Element {
  const { publicKey, purpose, apiKey, state, registeredAt } = item;
  const short = publicKey.slice(0, 6);
  return (
    <li class={state === "active" ? "card" : "card faded"}>
      <div class="card-head">
        <code class="title">{short}…</code>
        <Badge state={state} />
        <span class="badge neutral">{purpose}</span>
        {onRemove ? (
          <div class="buttons">
            <button type="button" class="danger quiet" onClick={onRemove}>
              Remove<span class="hidden"> {short}</span>
            </button>
          </div>
        ) : null}
      </div>
      <dl class="facts">
        <Fact name="Public key">
          <code class="breaking">{publicKey}</code>{" "}
          <CopyButton text={publicKey} what={`public key ${short}`} />
        </Fact>
        <Fact name="Acts for the API key">
          <code>{apiKey}</code>
        </Fact>
        <Fact name="Registered">
          <When iso={registeredAt} />
        </Fact>
      </dl>
    </li>
  );
}

type Open = { readonly kind: "register" } | { readonly kind: "remove"; readonly item: Item };

function Registered({
  value,
  again,
}: {
  value: RegisteredKeysView;
  again: () => void;
}): JSX.Element {
  const { session } = useSessionContext();
  const [open, setOpen] = useState<Open | null>(null);
  const close = () => {
    setOpen(null);
    again();
  };
  const choices = purposes.filter(({ scope }) => session.key.scopes.includes(scope));
  const canRemove = ({ purpose }: Item) => choices.some(({ name }) => name === purpose);
  return (
    <>
      {value.publicKeys.length === 0 ? (
        <Empty>No public key registered.</Empty>
      ) : (
        <ul class="cards">
          {value.publicKeys.map((item) => (
            <Card
              key={item.publicKey}
              item={item}
              onRemove={canRemove(item) ? () => setOpen({ kind: "remove", item }) : null}
            />
          ))}
        </ul>
      )}
      <div class="buttons">
        <button type="button" onClick={() => setOpen({ kind: "register" })}>
          Register a public key
        </button>
      </div>
      {open?.kind === "register" ? (
        <RegisterDialog account={value.account} choices={choices} onClose={close} />
      ) : null}
      {open?.kind === "remove" ? <RemoveDialog item={open.item} onClose={close} /> : null}
    </>
  );
}

function PublicKeyList(): JSX.Element {
  const [loaded, again] = useLoaded(loadPublicKeys);
  const aside =
    loaded.kind === "ready" ? counted(loaded.value.publicKeys.length, "public key") : undefined;
  return (
    <Panel title="Public keys" wide aside={aside}>
      <p class="muted small">
        An Ed25519 key replaces the API key where a protocol has no place for one: in the login of a
        stock ShredStream proxy, and in the certificate of a QUIC client of validators.
      </p>
      <LoadedPart loaded={loaded} again={again}>
        {(value) => <Registered value={value} again={again} />}
      </LoadedPart>
    </Panel>
  );
}

export function PublicKeys(): JSX.Element {
  const { session } = useSessionContext();
  if (purposes.some(({ scope }) => session.key.scopes.includes(scope))) return <PublicKeyList />;
  return (
    <Panel title="Public keys" wide>
      <NoScope scope="shreds" what="public keys" />
    </Panel>
  );
}
