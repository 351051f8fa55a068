// API keys of the account: list, rotate the session's key, and revoke any key.

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { KeyView, NewKeyView, UnusableKeyView } from "../../types.ts";
import { call } from "../api.ts";
import { done, keys, newKey, unusableKeys } from "../call-readers.ts";
import { Badge, Fact, LoadedPart, Panel, When } from "../components/basics.tsx";
import { Snippet } from "../components/copy-button.tsx";
import { Confirm, Dialog, DialogForm } from "../components/dialog.tsx";
import { useAction, useLoaded, useSessionContext } from "../hooks.ts";
import { count, counted } from "../units.ts";
import { PublicKeys } from "./public-keys.tsx";

interface AccountKeys {
  readonly usable: readonly KeyView[];
  readonly unusable: readonly UnusableKeyView[];
}

async function loadKeys(): Promise<AccountKeys> {
  const [usable, unusable] = await Promise.all([
    call("getKeys", [], keys),
    call("getUnusableKeys", [], unusableKeys),
  ]);
  return { usable, unusable };
}

const overlaps = [
  [0, "immediately"],
  [1, "in 1 hour"],
  [24, "in 24 hours"],
  [168, "in 7 days"],
] as const;

function Shown({ made, onClose }: { made: NewKeyView; onClose: () => void }): JSX.Element {
  const text = useRef<HTMLParagraphElement>(null);
  // The form that had the focus is gone. A button in its place would receive a second press of Enter.
  useEffect(() => text.current?.focus(), []);
  return (
    <>
      <p ref={text} tabIndex={-1}>
        This is the new key. <strong>It is shown only once</strong>: store it in the configuration
        of your programs before you close this dialog.
      </p>
      <Snippet text={made.text} what="new key" />
      <div class="buttons">
        <button type="button" class="primary" onClick={onClose}>
          I have stored it
        </button>
      </div>
    </>
  );
}

function RotateDialog({ onClose }: { readonly onClose: () => void }): JSX.Element {
  const action = useAction();
  const [hours, setHours] = useState(24);
  const [made, setMade] = useState<NewKeyView | null>(null);
  const { renew } = useSessionContext();
  const rotate = () =>
    action.run(async () => {
      setMade(await call("rotateKey", [{ overlapHours: hours }], newKey));
      renew();
    });
  return (
    <Dialog title="Rotate the key" isHeld={made !== null || action.isBusy} onClose={onClose}>
      {made ? (
        <Shown made={made} onClose={onClose} />
      ) : (
        <DialogForm verb="Rotate" action={action} onClose={onClose} onSubmit={() => void rotate()}>
          <p>
            You get a new key with the same scopes. Your current key stays valid during the overlap.
          </p>
          <div class="fields">
            <label for="overlap">The current key expires</label>
            <select
              id="overlap"
              value={hours}
              onChange={({ currentTarget }) => setHours(Number(currentTarget.value))}
            >
              {overlaps.map(([value, word]) => (
                <option key={value} value={value}>
                  {word}
                </option>
              ))}
            </select>
          </div>
        </DialogForm>
      )}
    </Dialog>
  );
}

interface RevokeProps {
  readonly item: KeyView;
  readonly onClose: () => void;
  readonly onRevoked: () => void;
}

function RevokeDialog({ item, onClose, onRevoked }: RevokeProps): JSX.Element {
  const { announce, end } = useSessionContext();
  const revoke = async () => {
    await call("revokeKey", [{ id: item.id }], done);
    if (item.isOwn) end("The key of your session was revoked.");
    else announce(`Revoked ${item.id}.`);
    onRevoked();
  };
  return (
    <Confirm title={`Revoke ${item.hint}…?`} verb="Revoke" onClose={onClose} work={revoke}>
      <p>
        Programs that use this key are rejected immediately. This cannot be undone.
        {item.isOwn ? " You are signed in with this key and will be signed out." : ""}
      </p>
    </Confirm>
  );
}

interface CardProps {
  readonly item: KeyView;
  readonly onRotate: () => void;
  readonly onRevoke: () => void;
}

function KeyCard({ item, onRotate, onRevoke }: CardProps): JSX.Element {
  const { id, hint, label, scopes, allowedRanges, createdAt, expiresAt, revokedAt } = item;
  const { requestsPerSecond, burst, lastUsedAt } = item;
  const isUsable = item.state === "active" || item.state === "expiring";
  return (
    <li class={isUsable ? "card" : "card faded"}>
      <div class="card-head">
        <code class="title">{hint}…</code>
        <Badge state={item.state} />
        {item.isOwn ? <span class="badge neutral">this session</span> : null}
        {isUsable ? (
          <div class="buttons">
            {item.isOwn ? (
              <button type="button" onClick={onRotate}>
                Rotate
              </button>
            ) : null}
            <button type="button" class="danger quiet" onClick={onRevoke}>
              Revoke<span class="hidden"> {hint}</span>
            </button>
          </div>
        ) : null}
      </div>
      <dl class="facts">
        {label === "" ? null : <Fact name="Label">{label}</Fact>}
        <Fact name="Scopes">{scopes.join(", ")}</Fact>
        <Fact name="Allowed addresses">
          {allowedRanges.length === 0 ? "any address" : allowedRanges.join(", ")}
        </Fact>
        <Fact name="Limit">
          {counted(requestsPerSecond, "call")} per second, {count(burst)} at once
        </Fact>
        <Fact name="Last request">
          {lastUsedAt === null ? "none since the service started" : <When iso={lastUsedAt} />}
        </Fact>
        <Fact name="Created">
          <When iso={createdAt} />
        </Fact>
        {expiresAt === null ? null : (
          <Fact name={item.state === "expired" ? "Expired" : "Expires"}>
            <When iso={expiresAt} />
          </Fact>
        )}
        {revokedAt === null ? null : (
          <Fact name="Revoked">
            <When iso={revokedAt} />
          </Fact>
        )}
        <Fact name="Id">
          <code>{id}</code>
        </Fact>
      </dl>
    </li>
  );
}

function UnusableKeyCard({ id }: UnusableKeyView): JSX.Element {
  return (
    <li class="card">
      <div class="card-head">
        <code class="title">{id}</code>
        <Badge state="unusable" />
      </div>
      <p>
        The service cannot read this key and refuses it: give the operator this id, and use another
        key meanwhile.
      </p>
    </li>
  );
}

type Open = { readonly kind: "rotate" } | { readonly kind: "revoke"; readonly item: KeyView };

export function Keys(): JSX.Element {
  const [loaded, again] = useLoaded(loadKeys);
  const [open, setOpen] = useState<Open | null>(null);
  const close = () => {
    setOpen(null);
    again();
  };
  const aside =
    loaded.kind === "ready"
      ? counted(loaded.value.usable.length + loaded.value.unusable.length, "key")
      : undefined;
  return (
    <div class="grid">
      <Panel title="API keys" wide aside={aside}>
        <LoadedPart loaded={loaded} again={again}>
          {({ usable, unusable }) => (
            <ul class="cards">
              {unusable.map(({ id }) => (
                <UnusableKeyCard key={id} id={id} />
              ))}
              {usable.map((item) => (
                <KeyCard
                  key={item.id}
                  item={item}
                  onRotate={() => setOpen({ kind: "rotate" })}
                  onRevoke={() => setOpen({ kind: "revoke", item })}
                />
              ))}
            </ul>
          )}
        </LoadedPart>
        <p class="muted small">
          The service stores only hashes of keys, so a key cannot be shown again. Ask the operator
          for a key with other scopes. Last requests are those to this node; use of this page does
          not count.
        </p>
        {open?.kind === "rotate" ? <RotateDialog onClose={close} /> : null}
        {open?.kind === "revoke" ? (
          <RevokeDialog item={open.item} onClose={close} onRevoked={again} />
        ) : null}
      </Panel>
      <PublicKeys />
    </div>
  );
}
