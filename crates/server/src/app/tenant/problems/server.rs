//! The store, the clock and the nodes. Only for callers with a grant for all tenants.

use segno_api::problems::{ProblemKind, Severity};
use segno_api::system::NodeState;

use super::super::Tenant;
use super::{Checked, Known as _, Outcomes, Problem, named};
use crate::disk::Disk;
use crate::nodes;
use crate::problem::{Code, Refusal};

const MEGABYTE: f64 = 1_000_000.0;

/// Clocks of node and store may differ by so much, in milliseconds.
const MAX_SKEW_MS: u64 = 2_000;

impl Tenant {
    pub(super) async fn problems_of_server(&self) -> Outcomes {
        let mut outcomes = self
            .checked(vec![
                (ProblemKind::Store, Box::pin(self.store_trouble())),
                (ProblemKind::Clock, Box::pin(self.clock_skew())),
                (ProblemKind::Nodes, Box::pin(self.lost_nodes())),
            ])
            .await;
        if self.resources().ledger.is_some() {
            let ledger = self.checked(vec![(ProblemKind::Ledger, Box::pin(self.ledger_trouble()))]);
            outcomes.extend(ledger.await);
        }
        outcomes
    }

    async fn ledger_trouble(&self) -> Result<Checked, Refusal> {
        let troubles = self.app.ledger_troubles().await;
        let problem = Problem {
            kind: ProblemKind::Ledger,
            severity: Severity::Error,
            text: "troubles of the ledger of DAG runs",
            page: "system",
            filter: &[],
        };
        let found = problem.of(troubles.len() as u64);
        Ok(Checked::of(found.parts(named(troubles.iter().map(ToString::to_string)))))
    }

    async fn store_trouble(&self) -> Result<Checked, Refusal> {
        let Err(refusal) = self.app.check_ready().await else { return Ok(self.nearly_full().await) };
        let text = match refusal.code() {
            code if code == Code::StoreDamaged.as_str() => "damaged store: a part of it cannot be read",
            _ => "store that takes no writes",
        };
        let problem = Problem {
            kind: ProblemKind::Store,
            severity: Severity::Error,
            text,
            page: "system",
            filter: &[],
        };
        Ok(Checked::of(problem.of(1).parts(named([refusal.detail().to_owned()]))))
    }

    async fn nearly_full(&self) -> Checked {
        let disk = self.app.disk().await.filter(Disk::is_nearly_full);
        let problem = Problem {
            kind: ProblemKind::Store,
            severity: Severity::Warning,
            text: "disk of the store has little room left",
            page: "system",
            filter: &[],
        };
        let left = disk.as_ref().map(room);
        Checked::of(problem.of(u64::from(disk.is_some())).parts(named(left)))
    }

    /// Nodes that vanished within the last hour without saying so.
    async fn lost_nodes(&self) -> Result<Checked, Refusal> {
        let nodes = nodes::list(&*self.resources().store, &self.app.answering).await?;
        let lost: Vec<_> = nodes.iter().filter(|node| node.state == NodeState::Lost).collect();
        let oldest = lost.iter().map(|node| node.last_seen_at).min();
        let problem = Problem {
            kind: ProblemKind::Nodes,
            severity: Severity::Warning,
            text: "nodes have vanished in the last hour",
            page: "system",
            filter: &[],
        };
        let names = lost.iter().map(|node| node.node.clone());
        Ok(Checked::of(problem.of(lost.len() as u64).since(oldest).parts(named(names))))
    }

    async fn clock_skew(&self) -> Result<Checked, Refusal> {
        let before_ms = self.app.clock.now_ms();
        let store_ms = self.resources().store.now_ms().await?;
        let after_ms = self.app.clock.now_ms();
        // The store read its clock at some time between the two.
        let skew_ms = before_ms.saturating_sub(store_ms).max(store_ms.saturating_sub(after_ms));
        let problem = Problem {
            kind: ProblemKind::Clock,
            severity: Severity::Warning,
            text: "node whose clock differs from the clock of the store",
            page: "system",
            filter: &[],
        };
        let found = problem.of(u64::from(skew_ms > MAX_SKEW_MS));
        let found = found.parts(named([format!("{}: {} s", self.app.node, skew_ms / 1_000)]));
        Ok(Checked::of(found))
    }
}

/// How much room is left on a disk, and how much should be.
fn room(disk: &Disk) -> String {
    let megabytes = |bytes: u64| format!("{:.0} MB", bytes as f64 / MEGABYTE);
    let Disk { bytes, total_bytes, free_bytes, .. } = *disk;
    format!(
        "{} are free of {}; at least {} should be; the files of the store take {}",
        megabytes(free_bytes),
        megabytes(total_bytes),
        megabytes(disk.wanted_bytes()),
        megabytes(bytes),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_that_is_too_small_is_not_called_full() {
        let disk = |total_bytes, free_bytes| Disk { bytes: 1_400_000, log_bytes: 0, total_bytes, free_bytes };
        let store = "the files of the store take 1 MB";
        for (disk, told) in [
            (disk(41_000_000, 41_000_000), "41 MB are free of 41 MB; at least 200 MB should be"),
            (disk(20_000_000_000, 700_000_000), "700 MB are free of 20000 MB; at least 2000 MB should be"),
        ] {
            assert!(disk.is_nearly_full());
            assert_eq!(room(&disk), format!("{told}; {store}"));
        }
    }
}
