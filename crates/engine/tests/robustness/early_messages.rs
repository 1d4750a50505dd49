//! Messages that are there before the code asks for them.

use segno::store::memory::MemoryStore;
use segno::{
    Activity, Client, Context, Failure, Mailbox, Orchestration, Registry, Runtime, RuntimeOptions, race,
};

const NUMBERS: Mailbox<u32> = Mailbox::new("numbers");
const DOUBLE: Activity<u32, u32> = Activity::new("double");
const SUM: Orchestration<(), u32> = Orchestration::new("sum");

/// Reads messages that wait already in the same turn as it asks for other things, and lets one lose a race.
async fn sum(ctx: Context, (): ()) -> Result<u32, Failure> {
    let numbers = ctx.mailbox(NUMBERS);
    let first = numbers.receive().await?;
    let second = numbers.receive().await?;
    let doubled = ctx.activity(DOUBLE, second).await?;
    let third = race! {
        number = numbers.receive() => number?,
        _ = numbers.receive() => 1_000,
    };
    let doubled_again = ctx.activity(DOUBLE, numbers.receive().await?).await?;
    Ok(first + doubled + third + doubled_again)
}

#[tokio::test]
async fn messages_that_wait_are_read_at_once_also_on_replay() {
    for resident_executions in [0, 16] {
        let store = MemoryStore::new();
        let client = Client::new(store.clone());
        for number in [1, 10, 100, 1_000] {
            client.enqueue("early", NUMBERS, number).await.unwrap();
        }
        client.start(SUM, ()).id("early").await.unwrap();
        let registry = Registry::builder()
            .orchestration(SUM, sum)
            .activity(DOUBLE, |_, number: u32| async move { Ok(2 * number) })
            .build()
            .unwrap();
        let options = RuntimeOptions { resident_executions, ..RuntimeOptions::default() };
        let runtime = Runtime::builder(store).registry(registry.clone()).options(options);
        let _runtime = runtime.start().await.unwrap();
        assert_eq!(client.result(SUM, "early").await.unwrap(), 1 + 20 + 100 + 2_000);
        let history = client.history("early").await.unwrap();
        registry.replay("early", 1, &history).unwrap();
    }
}
