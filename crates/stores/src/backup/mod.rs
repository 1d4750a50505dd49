//! The file that holds a store's content; `docs/backup-format.md` has every byte. A header, blocks of items, and a trailer
//! with the counts and the checksum of the content. Blocks with parts of the ledger come between. Every block has a checksum of its own over its place and its bytes.

mod block;
mod reader;
mod writer;

pub use reader::BackupReader;
pub use writer::{BackupWriter, IfThere, LedgerEnd};

use crate::ledger::LedgerContent;

/// Version of the format that this build writes, and the newest that it reads.
pub const FORMAT_VERSION: u32 = 2;

/// The version before the ledger was part of backups.
const WITHOUT_LEDGER: u32 = 1;

/// First bytes of every backup.
const MAGIC: [u8; 8] = *b"SEGNOBAK";

/// Length of the header of the file: magic, version, checksum.
const FILE_HEADER_BYTES: usize = 16;

fn file_header() -> [u8; FILE_HEADER_BYTES] {
    let mut header = [0; FILE_HEADER_BYTES];
    header[..8].copy_from_slice(&MAGIC);
    header[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
    let checksum = crc32c::crc32c(&header[..12]);
    header[12..].copy_from_slice(&checksum.to_le_bytes());
    header
}

/// States of the ledger in a trailer. Numbers are never reused.
const LEDGER_NONE: u8 = 0;
const LEDGER_INCLUDED: u8 = 1;
const LEDGER_ELSEWHERE: u8 = 2;

/// What a trailer tells of the ledger: its state; of one that is included the objects, the bytes and the checksum; of one
/// that is elsewhere its place.
fn encode_ledger(ledger: &LedgerContent, into: &mut Vec<u8>) {
    match ledger {
        LedgerContent::None | LedgerContent::Unknown => into.push(LEDGER_NONE),
        LedgerContent::Included { objects, bytes, sha256 } => {
            into.push(LEDGER_INCLUDED);
            into.extend_from_slice(&objects.to_le_bytes());
            into.extend_from_slice(&bytes.to_le_bytes());
            into.extend_from_slice(sha256.as_bytes());
        }
        LedgerContent::Elsewhere { place } => {
            into.push(LEDGER_ELSEWHERE);
            into.extend_from_slice(place.as_bytes());
        }
    }
}

fn decode_ledger(bytes: &[u8]) -> Option<LedgerContent> {
    let (state, rest) = bytes.split_first()?;
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).ok();
    match *state {
        LEDGER_NONE if rest.is_empty() => Some(LedgerContent::None),
        LEDGER_INCLUDED => {
            let (objects, rest) = rest.split_first_chunk()?;
            let (bytes, rest) = rest.split_first_chunk()?;
            let (objects, bytes) = (u64::from_le_bytes(*objects), u64::from_le_bytes(*bytes));
            Some(LedgerContent::Included { objects, bytes, sha256: text(rest)? })
        }
        LEDGER_ELSEWHERE => Some(LedgerContent::Elsewhere { place: text(rest)? }),
        _ => None,
    }
}
