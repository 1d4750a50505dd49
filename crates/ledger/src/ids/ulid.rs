//! ULIDs: 48 bits of milliseconds, then 80 random bits, as 26 characters of Crockford's base32.
//! Their order as text, as numbers and in time is the same. Writers draw them from a monotonic
//! generator that stays above the newest watermark that it knows, so that a slow clock cannot put
//! an event below what is folded already.

use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};

use segno::clock::Clock;
use segno::ids::IdSource;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Characters of a ULID.
const LENGTH: usize = 26;
/// Bits after the time.
const RANDOM_BITS: u32 = 80;
/// The digits: no I, L, O, U.
const DIGITS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// A ULID.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ulid(u128);

impl Ulid {
    /// The smallest.
    pub const MIN: Ulid = Ulid(0);
    /// The largest.
    pub const MAX: Ulid = Ulid(u128::MAX);

    /// The ULID of a time with these low 80 bits; higher bits of either part are dropped.
    pub const fn at(time_ms: u64, low: u128) -> Ulid {
        Ulid(((time_ms as u128) << RANDOM_BITS) | (low & ((1 << RANDOM_BITS) - 1)))
    }

    /// Its time, in Unix milliseconds.
    pub const fn time_ms(self) -> i64 {
        // 48 bits always fit.
        (self.0 >> RANDOM_BITS) as i64
    }

    /// Its bits.
    pub const fn bits(self) -> u128 {
        self.0
    }

    /// The ULID with these bits.
    pub const fn of_bits(bits: u128) -> Ulid {
        Ulid(bits)
    }

    /// The next larger one; the largest stays.
    pub const fn successor(self) -> Ulid {
        Ulid(self.0.saturating_add(1))
    }

    fn digits(self) -> [u8; LENGTH] {
        let mut digits = [0; LENGTH];
        for (place, digit) in digits.iter_mut().enumerate() {
            let shift = 5 * (LENGTH - 1 - place);
            *digit = DIGITS[((self.0 >> shift) & 31) as usize];
        }
        digits
    }
}

impl fmt::Display for Ulid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.digits();
        f.pad(std::str::from_utf8(&digits).expect("the digits are ASCII"))
    }
}

impl fmt::Debug for Ulid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text that is not a ULID in its canonical form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a ULID: pass 26 digits of Crockford's base32 in upper case, the first at most 7")]
pub struct InvalidUlid(pub String);

impl FromStr for Ulid {
    type Err = InvalidUlid;

    /// Only the canonical form: the id names objects, and two spellings would be two objects.
    fn from_str(text: &str) -> Result<Self, InvalidUlid> {
        let invalid = || InvalidUlid(text.chars().take(2 * LENGTH).collect());
        if text.len() != LENGTH || text.as_bytes()[0] > b'7' {
            return Err(invalid());
        }
        let mut bits = 0u128;
        for byte in text.bytes() {
            let digit = DIGITS.iter().position(|&digit| digit == byte).ok_or_else(invalid)?;
            bits = (bits << 5) | digit as u128;
        }
        Ok(Ulid(bits))
    }
}

impl Serialize for Ulid {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(std::str::from_utf8(&self.digits()).expect("the digits are ASCII"))
    }
}

impl<'de> Deserialize<'de> for Ulid {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// The monotonic generator of a writer.
pub struct Ulids {
    clock: Arc<dyn Clock>,
    random: Arc<dyn IdSource>,
    last: Mutex<Ulid>,
}

impl fmt::Debug for Ulids {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ulids").finish_non_exhaustive()
    }
}

impl Ulids {
    /// A generator over this clock and this randomness.
    pub fn new(clock: Arc<dyn Clock>, random: Arc<dyn IdSource>) -> Self {
        Ulids { clock, random, last: Mutex::new(Ulid::MIN) }
    }

    /// A new id, above all that it returned and above all that it was raised to.
    pub fn next_id(&self) -> Ulid {
        let low = (u128::from(self.random.new_seed()) << 16) | u128::from(self.random.new_seed() as u16);
        let drawn = Ulid::at(self.clock.now_ms(), low);
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        // Within a millisecond, and while the clock is behind, the successor keeps the order.
        *last = if drawn.time_ms() > last.time_ms() { drawn } else { last.successor() };
        *last
    }

    /// From now on ids are above this one: writers call it with every watermark that they see.
    pub fn raise_above(&self, id: Ulid) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        *last = (*last).max(id);
    }
}

#[cfg(test)]
mod tests {
    use segno_testkit::clock::VirtualClock;
    use segno_testkit::seeded::SeededIds;

    use super::*;

    #[test]
    fn text_number_and_time_have_one_order() {
        let id: Ulid = "01ARZ3NDEKTSV4RRFFQ69G5FAV".parse().unwrap();
        assert_eq!(id.to_string(), "01ARZ3NDEKTSV4RRFFQ69G5FAV");
        assert_eq!(id.time_ms(), 1_469_922_850_259, "as the specification's implementations say");
        let ids = [Ulid::MIN, Ulid::at(1, 0), Ulid::at(1, 5), Ulid::at(2, 0), id, Ulid::MAX];
        for pair in ids.windows(2) {
            assert!(pair[0] < pair[1] && pair[0].to_string() < pair[1].to_string());
            assert_eq!(pair[1].to_string().parse(), Ok(pair[1]));
        }
    }

    #[test]
    fn only_the_canonical_form_is_read() {
        let bad = [
            "",
            "01ARZ3NDEKTSV4RRFFQ69G5FA",
            "01arz3ndektsv4rrffq69g5fav",
            "81ARZ3NDEKTSV4RRFFQ69G5FAV",
            "01ARZ3NDEKTSV4RRFFQ69G5FAI",
            "01ARZ3NDEKTSV4RRFFQ69G5Fé",
        ];
        for text in bad {
            assert_eq!(text.parse::<Ulid>(), Err(InvalidUlid(text.to_owned())));
        }
    }

    #[test]
    fn a_generator_goes_up_when_its_clock_does_not() {
        let clock = VirtualClock::new();
        clock.set_ms(1_000_000);
        let ulids = Ulids::new(clock, SeededIds::shared(7));
        let first = ulids.next_id();
        assert_eq!(first.time_ms(), 1_000_000);
        let second = ulids.next_id();
        assert!(second > first);
        let watermark = Ulid::at(1_010_000, 3);
        ulids.raise_above(watermark);
        assert_eq!(ulids.next_id(), watermark.successor(), "ten seconds ahead of its clock");
        ulids.raise_above(first);
        assert!(ulids.next_id() > watermark.successor(), "a lower watermark changes nothing");
    }
}
