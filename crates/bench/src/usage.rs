//! What this process, or another one, has used so far, from `/proc`.

use std::fs;

use anyhow::Context;

/// Clock ticks per second in `/proc/self/stat`: fixed at 100 on Linux, whatever the kernel's own rate.
const TICKS_PER_SECOND: f64 = 100.0;

/// Processor time and memory of a process.
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
        Usage::read("self")
    }

    /// Reads both of another process.
    pub fn of(process: u32) -> anyhow::Result<Self> {
        Usage::read(&process.to_string())
    }

    fn read(process: &str) -> anyhow::Result<Self> {
        let read = |name: &str| {
            let path = format!("/proc/{process}/{name}");
            fs::read_to_string(&path).with_context(|| format!("reading {path}"))
        };
        Ok(Usage {
            cpu_s: cpu_seconds(&read("stat")?).context("the file stat has an unknown form")?,
            rss_mb: rss_mebibytes(&read("status")?).context("the file status has no VmRSS")?,
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
