/**
 * Webhooks; see the ports `Webhooks` and `WebhookDeliveries`. `due_at` is the time of the next attempt, the end of the lease of the
 * server that delivers now, or null if nothing waits. `epoch` is the fencing token of the lease. A queue exists for each
 * repository with pending deliveries; the repository is empty for events of no repository.
 */
export const webhooks = `
CREATE TABLE webhooks (
  id {id}, account_id {number} NOT NULL REFERENCES accounts (id), name {text} NOT NULL, url {text} NOT NULL, format {text} NOT NULL,
  types {text} NOT NULL, repositories {text} NOT NULL, secret {text} NOT NULL, is_enabled {number} NOT NULL, disabled_because {text},
  created_at {number} NOT NULL, since {number} NOT NULL, due_at {number}, leased_until {number} NOT NULL, epoch {number} NOT NULL,
  UNIQUE (account_id, name)
) {table};
CREATE INDEX webhooks_by_due ON webhooks (due_at) WHERE due_at IS NOT NULL;
CREATE TABLE webhook_queues (
  webhook_id {number} NOT NULL REFERENCES webhooks (id) ON DELETE CASCADE, repository {text} NOT NULL, next_at {number} NOT NULL,
  attempts {number} NOT NULL, failing_since {number},
  PRIMARY KEY (webhook_id, repository)
) {table};
CREATE INDEX webhook_queues_by_next ON webhook_queues (webhook_id, next_at);
CREATE TABLE webhook_deliveries (
  id {id}, webhook_id {number} NOT NULL REFERENCES webhooks (id) ON DELETE CASCADE, repository {text} NOT NULL,
  position {number} NOT NULL, event {text} NOT NULL, state {text} NOT NULL, attempts {number} NOT NULL, created_at {number} NOT NULL,
  tried_at {number}, outcome {text}, finished_at {number}
) {table};
CREATE INDEX webhook_deliveries_of_webhook ON webhook_deliveries (webhook_id, id);
CREATE INDEX webhook_deliveries_by_state ON webhook_deliveries (webhook_id, state, id);
CREATE INDEX webhook_deliveries_pending ON webhook_deliveries (webhook_id, repository, id) WHERE state = 'pending';
CREATE INDEX webhook_deliveries_by_end ON webhook_deliveries (finished_at) WHERE finished_at IS NOT NULL;
`
