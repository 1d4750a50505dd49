//! Names that are digests: short, of a fixed alphabet, and the same wherever they are computed.

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

use super::segment::escape;
use super::ulid::Ulid;

/// Characters of the digest in a queue name.
const QUEUE_DIGITS: usize = 26;
/// Characters of the digest in an attempt id.
const ATTEMPT_DIGITS: usize = 24;
/// Bytes of the digest in a run id.
const RUN_ID_BYTES: usize = 16;

/// The name of a dispatch in a queue that allows letters, digits and underscores only.
pub fn dispatch_queue_name(dispatch_id: &str) -> String {
    queue_name("d_", dispatch_id)
}

/// The name of a timer in such a queue.
pub fn timer_queue_name(timer_id: &str) -> String {
    queue_name("t_", timer_id)
}

/// The name under which a dispatch is queued again. It differs from the first, because queues drop
/// a name that they have seen within a day.
pub fn repair_queue_name(dispatch_id: &str, row_version: Ulid, repair: Ulid) -> String {
    queue_name("d_", &format!("{dispatch_id}:repair:{row_version}:{repair}"))
}

fn queue_name(prefix: &str, internal: &str) -> String {
    let mut name = prefix.to_owned();
    name.extend(base32(&Sha256::digest(internal.as_bytes())).take(QUEUE_DIGITS));
    name
}

/// The id of an attempt, from its dispatch id.
pub fn attempt_id(dispatch_id: &str) -> String {
    let digest = Sha256::new().chain_update("attempt:").chain_update(dispatch_id).finalize();
    let mut id = "att_".to_owned();
    id.extend(hex(&digest).take(ATTEMPT_DIGITS));
    id
}

/// The run id that a run key stands for. Without the secret of the tenant it cannot be guessed.
pub fn run_id_of_key(tenant_secret: &[u8], tenant: &str, workspace: &str, run_key: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(tenant_secret).expect("HMAC takes keys of any length");
    mac.update(format!("{}:{}:{run_key}", escape(tenant), escape(workspace)).as_bytes());
    let digest = mac.finalize().into_bytes();
    let mut id = "run_".to_owned();
    id.extend(base32(&digest[..RUN_ID_BYTES]));
    id
}

/// SHA-256 of a text in hexadecimal: fingerprints of requests and contents.
pub fn fingerprint(text: &str) -> String {
    hex(&Sha256::digest(text.as_bytes())).collect()
}

fn hex(bytes: &[u8]) -> impl Iterator<Item = char> {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]).map(|digit| char::from(DIGITS[usize::from(digit)]))
}

/// RFC 4648's base32 in lower case without padding.
fn base32(bytes: &[u8]) -> impl Iterator<Item = char> {
    const DIGITS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let bit = |at: usize| bytes.get(at / 8).map_or(0, |byte| (byte >> (7 - at % 8)) & 1);
    (0..(bytes.len() * 8).div_ceil(5)).map(move |digit| {
        let value = (0..5).fold(0, |value, at| (value << 1) | bit(digit * 5 + at));
        char::from(DIGITS[usize::from(value)])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_vectors_hold() {
        assert_eq!(dispatch_queue_name("dispatch:run1:extract:1"), "d_cxtoltqhbncw6nevn7hy53kqn6");
        assert_eq!(timer_queue_name("timer:retry:run1:extract:1:1705340400"), "t_hlljqq57362d4n3x2kett7jrqf");
        assert_eq!(attempt_id("dispatch:run1:extract:1"), "att_af5c419a69061299a227e6a9");
        let run_id =
            run_id_of_key(b"test-secret", "tenant-abc", "workspace-prod", "sched:daily-etl:1736935200");
        assert_eq!(run_id, "run_ba6mduulcrdaksbnw2imp3eiwq");
    }

    #[test]
    fn a_repair_has_a_name_of_its_own() {
        let name = |version, repair| {
            repair_queue_name("dispatch:run1:extract:1", Ulid::at(version, 0), Ulid::at(repair, 0))
        };
        let names = [name(1, 2), name(1, 3), name(2, 2), dispatch_queue_name("dispatch:run1:extract:1")];
        let distinct: std::collections::BTreeSet<&String> = names.iter().collect();
        assert_eq!(distinct.len(), names.len());
        assert!(names.iter().all(|name| name.len() == "d_".len() + QUEUE_DIGITS));
    }

    #[test]
    fn base32_is_that_of_the_rfc() {
        for (text, expected) in [("", ""), ("f", "my"), ("fo", "mzxq"), ("foobar", "mzxw6ytboi")] {
            assert_eq!(base32(text.as_bytes()).collect::<String>(), expected);
        }
    }
}
