//! Open files of the process: the limit is raised as far as the system allows, and connections
//! leave room for other files.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Open files that are not connections of callers: the store, tools with their pipes, calls of
/// functions, logs.
const RESERVED: u64 = 512;

/// Raises the soft limit of open files to the hard one, and returns how many connections may be
/// open at once.
pub fn connections_within_limit(wanted: usize) -> usize {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let mut limit = current.unwrap_or(u64::MAX);
    let hard = maximum.unwrap_or(u64::MAX);
    let needed = wanted as u64 + RESERVED;
    if limit < needed {
        let raised = needed.min(hard);
        match setrlimit(Resource::Nofile, Rlimit { current: Some(raised), maximum }) {
            Ok(()) => limit = raised,
            Err(error) => tracing::warn!(%error, "the limit of open files cannot be raised"),
        }
    }
    let within = within(limit, wanted);
    if within < wanted {
        tracing::warn!(
            limit,
            connections = within,
            "the limit of open files allows fewer connections than server.max_connections; raise it with `ulimit -Hn`"
        );
    }
    within
}

/// How many connections fit into a limit. At least half of a small limit is left for other files.
fn within(limit: u64, wanted: usize) -> usize {
    let room = limit.saturating_sub(RESERVED).max(limit / 2).max(1);
    wanted.min(usize::try_from(room).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_room_for_other_files() {
        for (limit, wanted, within_it) in [
            (u64::MAX, 4_096, 4_096),
            (4_608, 4_096, 4_096),
            (1_024, 4_096, 512),
            (256, 4_096, 128),
            (0, 10, 1),
            (100_000, 10, 10),
        ] {
            assert_eq!(within(limit, wanted), within_it, "{limit} {wanted}");
        }
    }
}
