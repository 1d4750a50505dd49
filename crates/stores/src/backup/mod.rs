//! The file that holds a store's content; `docs/backup-format.md` has every byte. A header, blocks of items, and a trailer
//! with the counts and the checksum of the content. Every block has a checksum of its own over its place and its bytes.

mod block;
mod reader;
mod writer;

pub use reader::BackupReader;
pub use writer::{BackupWriter, IfThere};

/// Version of the format that this build writes, and the newest that it reads.
pub const FORMAT_VERSION: u32 = 1;

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
