//! Every limit of webhooks, by name and with its unit.

use std::time::Duration;

use crate::functions::HumanDuration;

/// Most routes of one tenant.
pub const MAX_HOOKS_PER_TENANT: usize = 1_000;

/// Largest stored route in bytes.
pub const MAX_HOOK_BYTES: usize = 128 * 1024;

/// Most headers that a route keeps.
pub const MAX_KEPT_HEADERS: usize = 32;

/// Longest value of a header or parameter that is kept, in bytes; longer ones are cut.
pub const MAX_KEPT_VALUE_BYTES: usize = 4 * 1024;

/// Most query parameters that are kept.
pub const MAX_PARAMETERS: usize = 32;

/// Most content types that a route names.
pub const MAX_CONTENT_TYPES: usize = 16;

/// Most secrets of one route at once.
pub const MAX_SECRETS: usize = 8;

/// Most signatures of one request that are looked at.
pub const MAX_SIGNATURES: usize = 16;

/// How far the time of a signature may be from ours, both ways, unless the route says otherwise.
pub const DEFAULT_TOLERANCE: HumanDuration = HumanDuration::from_secs(5 * 60);

/// Largest tolerance.
pub const MAX_TOLERANCE: HumanDuration = HumanDuration::from_secs(24 * 60 * 60);

/// How long a key is remembered, unless the route says otherwise.
pub const DEFAULT_DEDUP_WINDOW: HumanDuration = HumanDuration::from_secs(24 * 60 * 60);

/// Longest time that a key is remembered or a payload kept.
pub const MAX_RETENTION: HumanDuration = HumanDuration::from_secs(366 * 24 * 60 * 60);

/// How long payloads are kept, unless said otherwise.
pub const DEFAULT_RETENTION: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// How many events of a tenant are kept, unless said otherwise.
pub const DEFAULT_MAX_EVENTS: usize = 500;

/// Most events of a tenant that can be kept.
pub const MAX_EVENTS: usize = 10_000;

/// Most actions of one payload that are remembered: the first, and the last replays.
pub const MAX_REMEMBERED_ACTIONS: usize = 50;

/// Longest reason of an outcome in characters.
pub const MAX_REASON_CHARS: usize = 1_000;

/// A payload of more bytes is not read by the threads that serve requests.
pub const MAX_INLINE_PAYLOAD_BYTES: usize = 64 * 1024;

/// Most bytes that filters and conditions of a route are estimated to read on the thread that serves the request: filters times
/// the size of what came in. It is an estimate: a rendering at its limits took 0.24 s without optimization, and this is about a
/// hundredth of it. Beyond it the work is done by the threads that tenants share fairly.
pub const MAX_INLINE_TEMPLATE_BYTES: usize = 256 * 1024;

/// So many bytes of a condition's text count as one filter: a comparison with its operands is longer.
pub const CONDITION_BYTES_PER_FILTER: usize = 16;
