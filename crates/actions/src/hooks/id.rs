//! Ids that ascend from new to old, so that a listing by id begins with the newest.
//!
//! They are UUIDs of version 8: 48 bits of time and 12 bits of a count, both counted down, and 62 random bits.

use uuid::Uuid;

const TIME_MASK: u64 = (1 << 48) - 1;
const COUNT_MASK: u64 = (1 << 12) - 1;

/// A new id. The count tells those of one millisecond apart.
pub(super) fn newest_first(now_ms: u64, count: u64, random: Uuid) -> Uuid {
    let mut bytes = *random.as_bytes();
    bytes[..6].copy_from_slice(&(TIME_MASK - (now_ms & TIME_MASK)).to_be_bytes()[2..]);
    bytes[6..8].copy_from_slice(&(COUNT_MASK - (count & COUNT_MASK)).to_be_bytes()[6..]);
    uuid::Builder::from_custom_bytes(bytes).into_uuid()
}

/// What all ids of this time and later ones come before or begin with.
pub(super) fn just_before(ms: u64) -> String {
    let time = TIME_MASK - (ms & TIME_MASK);
    format!("{:08x}-{:04x}", time >> 16, time & 0xffff)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_ascend_from_new_to_old() {
        let id = |ms, count, random| newest_first(ms, count, Uuid::from_u128(random)).to_string();
        let (new, old) = (1_800_000_000_000, 1_700_000_000_000);
        let ids =
            [id(new, 7, 9), id(new, 6, 1), id(new - 1, 9, 5), id(old, 4_095, 3), id(old, 0, 3), id(0, 0, 0)];
        assert!(ids.is_sorted(), "{ids:?}");
        assert!(ids.iter().all(|id| id.parse::<Uuid>().unwrap().get_version_num() == 8), "{ids:?}");
        let bound = just_before(old);
        assert!(id(old + 1, 0, u128::MAX) < bound && bound < id(old, 4_095, 0) && bound < id(old - 1, 0, 0));
    }
}
