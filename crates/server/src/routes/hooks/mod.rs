//! Webhooks: the public route that senders post to, and what looks after it.
//!
//! | file | what |
//! |---|---|
//! | `ingress` | what senders post to; it has no key, the route's verification guards it |
//! | `declare` | routes: listed, read, declared, changed, deleted |
//! | `payloads` | what came in: listed, inspected, replayed, deleted |
//! | `events` | what became of it |
//! | `test` | whether a route would take a request |
//! | `view` | all of it as callers see it |

pub mod declare;
pub mod events;
pub mod ingress;
pub mod payloads;
pub mod test;
mod view;
