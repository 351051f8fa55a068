// How to connect: the gateway's URL, limits, addresses of tips, and addresses for a receiver's firewall.

import type { JSX } from "preact";
import type { ServiceView } from "../../types.ts";
import { Fact, Loading, Panel } from "../components/basics.tsx";
import { Addresses, Snippet } from "../components/copy-button.tsx";
import { useSessionContext, useTopic } from "../hooks.ts";
import { count, counted, lamportsText } from "../units.ts";

/** The key is never shown, so the URL has a placeholder for it. */
function gatewayUrl({ gatewayUrl: published }: ServiceView): string {
  return `${(published ?? location.origin).replace(/\/$/, "")}/relay?api-key=<your key>`;
}

function Submissions({ service }: { readonly service: ServiceView }): JSX.Element {
  return (
    <div>
      <h3>Tip one of these addresses in each transaction</h3>
      <Addresses addresses={service.tipAddresses} />
      <p class="muted small">
        At least {lamportsText(service.minimumTipLamports)}, by a System transfer. Tips for shreds
        go to other addresses.
      </p>
    </div>
  );
}

function Firewall({ service }: { readonly service: ServiceView }): JSX.Element {
  const { senderAddresses } = service;
  return (
    <div>
      <h3>Open the receiver's firewall</h3>
      {senderAddresses.length === 0 ? (
        <p>Ask the operator for the address from which shreds are sent.</p>
      ) : (
        <p>
          UDP from{" "}
          {senderAddresses.map((address, i) => (
            <>
              {i === 0 ? "" : ", "}
              <code class="breaking">{address}</code>
            </>
          ))}
        </p>
      )}
      <p class="muted small">
        From any source port, to the port of your receiver. Shreds and challenges come from
        different source ports.
      </p>
    </div>
  );
}

export function ConnectPanel(): JSX.Element {
  const service = useTopic("service");
  const { scopes, requestsPerSecond, burst } = useSessionContext().session.key;
  if (!service) return <Loading />;
  const canSubmit = scopes.includes("submit") || scopes.includes("batch");
  return (
    <Panel title="Connect" wide>
      <Snippet text={gatewayUrl(service)} what="URL of the gateway" />
      <dl class="facts limits">
        <Fact name="Limit of this key">
          {counted(requestsPerSecond, "call")} per second, {count(burst)} at once
        </Fact>
        <Fact name="Methods and errors">
          <a href="/openrpc.json">OpenRPC</a>, <a href="/openapi.json">OpenAPI</a>
        </Fact>
      </dl>
      <div class="halves">
        {canSubmit ? <Submissions service={service} /> : null}
        {scopes.includes("shreds") ? <Firewall service={service} /> : null}
      </div>
    </Panel>
  );
}
