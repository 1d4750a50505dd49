//! What the files of an embedded store take, and what is left on their disk.

use std::path::Path;
use std::time::Duration;

use segno::clock::{self, Clock};

/// A disk that takes longer than this to answer is not waited for.
const ANSWER_TIME: Duration = Duration::from_secs(2);

/// What names of segments of the log begin with; digits follow.
const LOG_PREFIX: &str = "log-";

/// A disk with the files of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Disk {
    /// Bytes of all files of the store.
    pub bytes: u64,
    /// Of these, those of the log.
    pub log_bytes: u64,
    /// Size of the disk.
    pub total_bytes: u64,
    /// What this process may still write.
    pub free_bytes: u64,
}

impl Disk {
    /// The disk under a directory; `None` when it cannot be looked at, or not in time.
    pub async fn under(directory: &Path, clock: &dyn Clock) -> Option<Self> {
        let directory = directory.to_owned();
        // A disk may take long to answer, which must not hold up a thread that serves.
        let looked = tokio::task::spawn_blocking(move || look(&directory).ok());
        clock::timeout(clock, ANSWER_TIME, looked).await?.ok()?
    }

    /// Whether little room is left on it.
    pub fn is_nearly_full(&self) -> bool {
        self.free_bytes < self.wanted_bytes()
    }

    /// What should be free: a tenth of the disk, but at least 200 MB and at most 5 GB.
    pub fn wanted_bytes(&self) -> u64 {
        const ENOUGH_BYTES: u64 = 5_000_000_000;
        const LEAST_BYTES: u64 = 200_000_000;
        (self.total_bytes / 10).clamp(LEAST_BYTES, ENOUGH_BYTES)
    }
}

fn look(directory: &Path) -> std::io::Result<Disk> {
    let (mut bytes, mut log_bytes) = (0, 0);
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        // A file may vanish while the others are looked at.
        let Ok(metadata) = entry.metadata() else { continue };
        if metadata.is_file() {
            bytes += metadata.len();
            if entry.file_name().to_string_lossy().starts_with(LOG_PREFIX) {
                log_bytes += metadata.len();
            }
        }
    }
    let found = rustix::fs::statvfs(directory)?;
    let size = found.f_frsize;
    Ok(Disk {
        bytes,
        log_bytes,
        total_bytes: found.f_blocks.saturating_mul(size),
        free_bytes: found.f_bavail.saturating_mul(size),
    })
}

#[cfg(test)]
mod tests {
    use segno::clock::SystemClock;

    use super::*;

    #[tokio::test]
    async fn files_are_added_up_and_the_disk_is_looked_at() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("state.redb"), [0; 700]).unwrap();
        std::fs::write(directory.path().join("log-0000000000000001"), [0; 300]).unwrap();
        let disk = Disk::under(directory.path(), &SystemClock).await.unwrap();
        assert_eq!((disk.bytes, disk.log_bytes), (1_000, 300));
        assert!(disk.total_bytes > 0 && disk.free_bytes <= disk.total_bytes);
        assert_eq!(Disk::under(&directory.path().join("nothing"), &SystemClock).await, None);
    }

    #[test]
    fn a_disk_is_nearly_full_when_little_is_left_of_it() {
        const GB: u64 = 1_000_000_000;
        for (total_bytes, free_bytes, expected) in [
            (100 * GB, 50 * GB, false),
            (100 * GB, 6 * GB, false),
            (100 * GB, 4 * GB, true),
            (10 * GB, 2 * GB, false),
            (10 * GB, GB / 2, true),
            (GB, GB / 4, false),
            (GB, GB / 10, true),
        ] {
            let disk = Disk { bytes: 0, log_bytes: 0, total_bytes, free_bytes };
            assert_eq!(disk.is_nearly_full(), expected, "{free_bytes} of {total_bytes}");
        }
    }
}
