use segno::store::memory::MemoryStore;
use segno::*;
use std::time::Duration;

const GREET: Activity<String, String> = Activity::new("greet");
const HELLO: Orchestration<String, String> = Orchestration::new("hello");
const INLINE: Orchestration<u32, u32> = Orchestration::new("inline");
const APPROVED: Signal<String> = Signal::new("approved");
const WAIT: Orchestration<(), String> = Orchestration::new("wait");

async fn hello(ctx: Context, name: String) -> Result<String, Failure> {
    ctx.activity(GREET, name).attempts(3).await
}
async fn inline(ctx: Context, n: u32) -> Result<u32, Failure> {
    let mut sum = 0;
    for i in 0..n {
        sum += ctx.run("add", move || async move { Ok(i) }).await?;
    }
    Ok(sum)
}
async fn wait(ctx: Context, _: ()) -> Result<String, Failure> {
    race! {
        who = ctx.event(APPROVED) => who,
        _ = ctx.sleep(Duration::from_millis(200)) => Ok("nobody".to_owned()),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn hello_world() {
    let registry = Registry::builder()
        .activity(GREET, |_ctx, name: String| async move { Ok(format!("Hello, {name}!")) })
        .orchestration(HELLO, hello)
        .orchestration(INLINE, inline)
        .orchestration(WAIT, wait)
        .build()
        .unwrap();
    let store = MemoryStore::new();
    let runtime = Runtime::builder(store).registry(registry).start().await.unwrap();
    let client = runtime.client();
    let out = client.start(HELLO, "Ada".to_owned()).id("a").result().await.unwrap();
    assert_eq!(out, "Hello, Ada!");
    println!("{:#?}", client.history("a").await.unwrap());
    assert_eq!(client.start(INLINE, 10).id("i").result().await.unwrap(), 45);
    assert_eq!(client.start(WAIT, ()).id("w1").result().await.unwrap(), "nobody");
    client.start(WAIT, ()).id("w2").await.unwrap();
    client.raise("w2", APPROVED, "bob".to_owned()).await.unwrap();
    assert_eq!(client.result(WAIT, "w2").await.unwrap(), "bob");
    println!("{:#?}", client.queue_depths().await.unwrap());
    runtime.shutdown(Duration::from_secs(1)).await;
}
