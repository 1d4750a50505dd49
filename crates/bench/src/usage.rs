//! What this process has used so far, from `/proc`.

use std::fs;

use anyhow::Context;

/// Clock ticks per second in `/proc/self/stat`: fixed at 100 on Linux, whatever the kernel's own rate.
const TICKS_PER_SECOND: f64 = 100.0;

/// Processor time and memory of this process.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Usage {
    /// Processor time in user and kernel mode since the start, in seconds.
    pub cpu_s: f64,
    /// Resident memory now, in MiB.
    pub rss_mb: f64,
}

impl Usage {
    /// Reads both now.
    pub fn now() -> anyhow::Result<Self> {
        let stat = fs::read_to_string("/proc/self/stat").context("reading /proc/self/stat")?;
        let status = fs::read_to_string("/proc/self/status").context("reading /proc/self/status")?;
        Ok(Usage {
            cpu_s: cpu_seconds(&stat).context("/proc/self/stat has an unknown form")?,
            rss_mb: rss_mebibytes(&status).context("/proc/self/status has no VmRSS")?,
        })
    }
}

/// Fields 14 and 15, counted after the name in parentheses, which may itself have spaces and parentheses.
fn cpu_seconds(stat: &str) -> Option<f64> {
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut fields = after_name.split_whitespace().skip(11);
    let user: f64 = fields.next()?.parse().ok()?;
    let kernel: f64 = fields.next()?.parse().ok()?;
    Some((user + kernel) / TICKS_PER_SECOND)
}

fn rss_mebibytes(status: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes / 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_is_read_after_any_name() {
        let stat = "42 (a) strange (name) S 1 2 3 4 5 6 7 8 9 10 250 50 0 0 20 0 3 0";
        assert_eq!(cpu_seconds(stat), Some(3.0));
        assert_eq!(cpu_seconds("nonsense"), None);
        assert_eq!(cpu_seconds("42 (short) S 1 2"), None);
    }

    #[test]
    fn resident_memory_is_read_in_mebibytes() {
        assert_eq!(rss_mebibytes("Name:\tx\nVmRSS:\t    2048 kB\nThreads:\t3\n"), Some(2.0));
        assert_eq!(rss_mebibytes("Name:\tx\n"), None);
    }

    #[test]
    fn this_process_uses_memory() {
        assert!(Usage::now().unwrap().rss_mb > 0.5);
    }
}
