//! Registering code: activities that share a state, and registrations that are missing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use segno::{Activity, ActivityContext, Code, Context, Failure, Orchestration, Registry};

use crate::support::{World, in_both_modes};

const MAIN: Orchestration<u32, u32> = Orchestration::new("main");
const DEPOSIT: Activity<u32, ()> = Activity::new("deposit");
const BALANCE: Activity<(), u32> = Activity::new("balance");

#[derive(Default)]
struct Account(AtomicU32);

impl Account {
    async fn deposit(self: Arc<Self>, _ctx: ActivityContext, amount: u32) -> Result<(), Failure> {
        self.0.fetch_add(amount, Ordering::Relaxed);
        Ok(())
    }

    async fn balance(self: Arc<Self>, _ctx: ActivityContext, (): ()) -> Result<u32, Failure> {
        Ok(self.0.load(Ordering::Relaxed))
    }
}

async fn main(ctx: Context, amount: u32) -> Result<u32, Failure> {
    ctx.activity(DEPOSIT, amount).await?;
    ctx.activity(DEPOSIT, amount).await?;
    ctx.activity(BALANCE, ()).await
}

#[tokio::test(start_paused = true)]
async fn activities_of_a_set_share_their_state() {
    in_both_modes(|world: World| async move {
        let account = Arc::new(Account::default());
        let registry = Registry::builder()
            .orchestration(MAIN, main)
            .activities(account.clone(), |set| {
                set.activity(DEPOSIT, Account::deposit).activity(BALANCE, Account::balance)
            })
            .requires(DEPOSIT)
            .requires(BALANCE)
            .requires(MAIN)
            .build()
            .unwrap();
        let _node = world.node(&registry).await;
        assert_eq!(world.client.start(MAIN, 21).id("a").result().await.unwrap(), 42);
        assert_eq!(account.0.load(Ordering::Relaxed), 42);
    })
    .await;
}

#[test]
fn a_missing_registration_is_found_before_a_node_starts() {
    let build = || {
        Registry::builder()
            .orchestration(MAIN, main)
            .activities(Arc::new(Account::default()), |set| set.activity(DEPOSIT, Account::deposit))
    };
    assert!(build().requires(DEPOSIT).requires(MAIN.at("1.0.0")).build().is_ok());
    let one = build().requires(BALANCE).build().err().unwrap();
    assert_eq!(one.code(), Code::MissingRegistration);
    assert!(one.to_string().starts_with(r#"activity "balance" is required but not registered;"#), "{one}");
    let several = build().requires(MAIN.at("2.0.0")).requires(DEPOSIT).requires(BALANCE).requires(BALANCE);
    let several = several.build().err().unwrap().to_string();
    let names = r#"activity "balance", orchestration "main" 2.0.0 are required but not registered;"#;
    assert!(several.starts_with(names), "{several}");
}

#[test]
fn a_set_refuses_what_the_registry_refuses() {
    let twice = Registry::builder().activities(Arc::new(Account::default()), |set| {
        set.activity(DEPOSIT, Account::deposit).activity(DEPOSIT, Account::deposit)
    });
    assert_eq!(twice.build().err().unwrap().code(), Code::DuplicateRegistration);
}
