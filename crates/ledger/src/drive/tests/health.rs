//! Health of the ledger: events that wait, and object stores that do not answer.

use std::time::Duration;

use super::world::{World, all_succeed};
use crate::drive::LedgerTrouble;

const ONE: &str = "
name: one
tasks: [{key: a, function: work}]
";

#[test]
fn events_that_no_node_folds_are_a_trouble_until_one_does() {
    segno_testkit::run(async {
        let world = World::new(all_succeed());
        world.publish(ONE).await;
        assert_eq!(world.ledger.troubles().await, []);
        assert_eq!(world.ledger.fold_lag().await.unwrap(), Duration::ZERO);
        let run_id = world.start("one").await;
        assert_eq!(world.ledger.troubles().await, [], "not at once");
        world.pass(40).await;
        let troubles = world.ledger.troubles().await;
        assert!(
            matches!(troubles.as_slice(), [LedgerTrouble::NotFolded(lag)] if (40..60).contains(&lag.as_secs())),
            "{troubles:?}"
        );
        let _process = world.process("a").await;
        world.until_ended(&run_id).await;
        assert_eq!(world.ledger.troubles().await, []);
        assert_eq!(world.ledger.fold_lag().await.unwrap(), Duration::ZERO);
    });
}
