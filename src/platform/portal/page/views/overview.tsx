// Overview of an account: how to connect, its tier with registered tips, missing amount to the next tier
// and grace period, payment instructions and history.

import type { JSX } from "preact";
import type { TipProof } from "../../../../client/responses.ts";
import type { TierView } from "../../types.ts";
import { Badge, Empty, Fact, Loading, NoScope, Panel } from "../components/basics.tsx";
import { Addresses, CopyButton, Snippet } from "../components/copy-button.tsx";
import { TierMeter } from "../components/tier-meter.tsx";
import { useNow, useSessionContext, useTopic } from "../hooks.ts";
import { graceWords, ms } from "../times.ts";
import { lamportsText, sol, solDigits } from "../units.ts";
import { Registrations, TierHistory } from "./audit.tsx";
import { ConnectPanel } from "./connect.tsx";

function Grace({ tier }: { readonly tier: TierView }): JSX.Element | null {
  const now = useNow();
  if (!tier.grace || tier.tier === null) return null;
  const own = tier.thresholds.find(({ tier: name }) => name === tier.tier);
  const threshold = sol(own?.thresholdLamports ?? 0);
  const words = graceWords(tier.tier, threshold, ms(tier.grace.ends), now);
  return (
    <p class="note warning">
      <strong>{words.until}</strong>, {words.left}, {words.unless}.
    </p>
  );
}

/** "0.31 of 0.5 SOL for tier-2, 0.19 SOL missing" */
function thresholdText(tier: TierView, at: TierView["thresholds"][number]): string {
  const whole = sol(at.thresholdLamports);
  if (at.missingLamports === 0) return `${at.tier} at ${whole}`;
  const part = solDigits(tier.sumLamports);
  return `${part} of ${whole} for ${at.tier}, ${sol(at.missingLamports)} missing`;
}

function TierPanel({ tier }: { readonly tier: TierView }): JSX.Element {
  return (
    <Panel title="Tier" wide aside={`registered tips of the last ${tier.windowHours} h`}>
      <div class="headline">
        <p class="big">{tier.tier ?? "No tier"}</p>
        <p class="big number" title={lamportsText(tier.sumLamports)}>
          {sol(tier.sumLamports)}
        </p>
      </div>
      <TierMeter tier={tier} />
      <ul class="thresholds">
        {tier.thresholds.map((at) => (
          <li key={at.tier} title={`${lamportsText(at.missingLamports)} missing`}>
            <Badge state={at.missingLamports === 0 ? "reached" : "not_reached"} />{" "}
            <span>{thresholdText(tier, at)}</span>
          </li>
        ))}
      </ul>
      <Grace tier={tier} />
    </Panel>
  );
}

/** The key is never shown, so the command reads it from an environment variable. */
function registerCommand(): string {
  return [
    `curl '${location.origin}/shred-pay?verbose=true' \\`,
    `  -H "api-key: $SHREDWAY_KEY" \\`,
    `  -d '[{"transaction": "<signed transaction, base64>", "slot": <slot>}]'`,
  ].join("\n");
}

interface ProofValueProps {
  readonly name: string;
  readonly value: string;
  readonly use: string;
}

function ProofValue({ name, value, use }: ProofValueProps): JSX.Element {
  return (
    <Fact name={name}>
      <code class="breaking">{value}</code> <CopyButton text={value} what={name.toLowerCase()} />
      <div class="muted small">{use}</div>
    </Fact>
  );
}

/** The values that name the account in a tip. */
function ProofOfPayer({ proof }: { readonly proof: TipProof }): JSX.Element {
  return (
    <div class="proof">
      <h3>Prove that the tip is yours</h3>
      <p>
        Add the memo or the reference key to the transaction before you sign it. The tip then counts
        for your account, even if someone else registers it first.
      </p>
      <dl class="facts">
        <ProofValue
          name="Memo"
          value={proof.memo}
          use="A word in the text of a Memo instruction."
        />
        <ProofValue
          name="Reference key"
          value={proof.referenceKey}
          use="A read-only account of the transfer."
        />
        <ProofValue
          name="Account"
          value={proof.account}
          use="Without either: the fee payer signs a text with this id."
        />
      </dl>
    </div>
  );
}

function HowTo({ tier }: { readonly tier: TierView }): JSX.Element {
  return (
    <Panel title="How a tip counts" wide>
      <div class="halves">
        <div>
          <h3>1. Pay it to any of these addresses</h3>
          <Addresses addresses={tier.tipAddresses} />
          <p class="muted small">Use a System transfer. Send the transaction by any service.</p>
        </div>
        <div>
          <h3>2. Register a copy of the transaction</h3>
          <Snippet text={registerCommand()} what="command to register a tip" />
          <p class="muted small">
            Slot: the one whose shreds made you send it, or the current one. Register up to 25 tips
            at once. A tip counts once it has landed without error, for {tier.windowHours} hours
            from its registration.
          </p>
        </div>
      </div>
      {tier.tipProof === null ? null : <ProofOfPayer proof={tier.tipProof} />}
    </Panel>
  );
}

function ShredTierView(): JSX.Element {
  const tier = useTopic("tier");
  if (!tier) return <Loading lines={6} />;
  if (!tier.isSold) {
    return (
      <>
        <Panel title="Tier" wide>
          <Empty>This service does not sell shreds and does not register tips.</Empty>
        </Panel>
        <ConnectPanel />
      </>
    );
  }
  return (
    <>
      <TierPanel tier={tier} />
      <ConnectPanel />
      <HowTo tier={tier} />
      <TierHistory tier={tier} />
      <Registrations tier={tier} />
    </>
  );
}

export function Overview(): JSX.Element {
  const { session } = useSessionContext();
  return (
    <div class="grid">
      {session.key.scopes.includes("shreds") ? (
        <ShredTierView />
      ) : (
        <>
          <Panel title="Tier" wide>
            <NoScope scope="shreds" what="the tier" />
          </Panel>
          <ConnectPanel />
        </>
      )}
    </div>
  );
}
