//! A block: a header of 16 bytes and its content, compressed if that makes it smaller.

/// Length of the header of a block.
pub const BLOCK_HEADER_BYTES: usize = 16;

/// Most bytes that a block may have before compression. A longer length is damage, not data.
pub const MAX_BLOCK_BYTES: usize = 1 << 30;

/// What a block holds. Numbers are never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum BlockKind {
    /// Items, one behind the other.
    Items = 1,
    /// Counts and checksum; the last block.
    Trailer = 2,
    /// Parts of the ledger, one behind the other.
    Ledger = 3,
}

/// How a block is stored. Numbers are never reused.
const PLAIN: u8 = 0;
const LZ4: u8 = 1;

/// A block as it is in the file. `number` counts the blocks of a file from 0, so that a block that is missing, doubled or
/// in another place is noticed.
pub fn encode(kind: BlockKind, content: &[u8], number: u64) -> Vec<u8> {
    let packed = lz4_flex::block::compress(content);
    let (compression, stored) =
        if packed.len() < content.len() { (LZ4, &packed[..]) } else { (PLAIN, content) };
    let len = |bytes: &[u8]| u32::try_from(bytes.len()).expect("a block is far below 4 GiB").to_le_bytes();
    let mut block = vec![0; BLOCK_HEADER_BYTES];
    block[4..8].copy_from_slice(&len(stored));
    block[8..12].copy_from_slice(&len(content));
    block[12] = kind as u8;
    block[13] = compression;
    block.extend_from_slice(stored);
    let checksum = checksum(&block[4..], number);
    block[..4].copy_from_slice(&checksum.to_le_bytes());
    block
}

fn checksum(bytes: &[u8], number: u64) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&number.to_le_bytes()), bytes)
}

/// Length of what follows the header of a block in the file.
pub fn stored_len(header: &[u8; BLOCK_HEADER_BYTES]) -> Result<usize, String> {
    let len = u32_at(header, 4) as usize;
    if len > MAX_BLOCK_BYTES || u32_at(header, 8) as usize > MAX_BLOCK_BYTES {
        return Err("a block is longer than any block".to_owned());
    }
    Ok(len)
}

/// The content of a block, given with its header.
pub fn decode(block: &[u8], number: u64) -> Result<(BlockKind, Vec<u8>), String> {
    let (header, stored) = block.split_first_chunk::<BLOCK_HEADER_BYTES>().ok_or("a block is cut")?;
    if u32_at(header, 0) != checksum(&block[4..], number) {
        return Err("its checksum is wrong".to_owned());
    }
    let kind = match header[12] {
        1 => BlockKind::Items,
        2 => BlockKind::Trailer,
        3 => BlockKind::Ledger,
        unknown => return Err(format!("its kind {unknown} is unknown")),
    };
    let len = u32_at(header, 8) as usize;
    let content = match header[13] {
        PLAIN => stored.to_vec(),
        LZ4 => lz4_flex::block::decompress(stored, len).map_err(|error| error.to_string())?,
        unknown => return Err(format!("its compression {unknown} is unknown")),
    };
    if content.len() != len {
        return Err("its length is wrong".to_owned());
    }
    Ok((kind, content))
}

pub fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    bytes.get(offset..).and_then(|rest| rest.first_chunk()).copied().map_or(0, u32::from_le_bytes)
}
