//! Copies that are made while a compactor works on the scope and keeps no file for readers.

use std::collections::VecDeque;
use std::sync::Arc;

use async_trait::async_trait;
use object_store::ObjectStore;
use segno::clock::Clock;

use super::world::{Script, World, batches, eager, folded, seeds};
use crate::compactor::{Compactor, Options};
use crate::event::Envelope;
use crate::fold::State;
use crate::objects::testing::place;
use crate::objects::{StorageError, Stores};
use crate::transfer::{Part, Receiver, Sink, send};

/// Takes a copy, and has a batch appended and folded after every part of it, as long as there are batches.
struct Busy<'w> {
    world: &'w World,
    compactor: Compactor<State>,
    waiting: VecDeque<Vec<Envelope>>,
    receiver: Receiver,
}

#[async_trait]
impl Sink for Busy<'_> {
    async fn put(&mut self, part: Part) -> Result<(), StorageError> {
        self.receiver.put(part).await?;
        if let Some(batch) = self.waiting.pop_front() {
            self.world.writer().append(&batch).await?;
            self.world.clock.advance(1_000);
            self.compactor.fold_waiting().await?;
            self.compactor.settle().await?;
        }
        Ok(())
    }
}

#[tokio::test]
async fn a_copy_that_is_made_while_events_are_folded_has_all_events_up_to_one_moment() {
    for seed in seeds(70, 4) {
        let world = World::new(Options { grace_ms: 0, ..eager() });
        let mut script = Script::new(seed);
        let events = [script.events(300), script.rest()].concat();
        let all = batches(&events, &mut script.random);
        let (before, during) = all.split_at(all.len() / 2);
        let mut compactor = world.open(1).await;
        for batch in before {
            world.writer().append(batch).await.unwrap();
            compactor.fold_waiting().await.unwrap();
            compactor.settle().await.unwrap();
        }
        let target: Arc<dyn ObjectStore> = place();
        let clock = Arc::clone(&world.clock) as Arc<dyn Clock>;
        let receiver = Receiver::new(Arc::clone(&target), Arc::clone(&clock));
        let waiting = during.iter().cloned().collect();
        let mut busy = Busy { world: &world, compactor, waiting, receiver };
        let source = Stores::shared(Arc::clone(&world.objects) as Arc<dyn ObjectStore>);
        send(&source, clock, &mut busy).await.unwrap();
        let appended = all.len() - busy.waiting.len();
        busy.receiver.finish().unwrap();
        let mut setup = world.setup(&world.store(crate::objects::faulty::Faults::NONE), 2);
        setup.stores = Stores::shared(target);
        let mut copy = Compactor::<State>::open(setup).await.unwrap();
        copy.fold_waiting().await.unwrap();
        let rows = copy.replay().await.unwrap().rows();
        let moment = (before.len()..=appended).find(|count| folded(&all[..*count].concat()) == rows);
        assert!(moment.is_some(), "seed {seed}: the copy is not the ledger of any moment");
    }
}
