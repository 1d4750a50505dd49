//! A saga: when a later step fails for good, the earlier ones are undone in reverse order.
//!
//! Run it: `cargo run -p segno-examples --bin saga`

use std::time::Duration;

use segno::store::memory::MemoryStore;
use segno::{Activity, ActivityContext, Context, Failure, Orchestration, Registry, Runtime};

/// The number of a trip.
type Trip = u32;

const BOOK_FLIGHT: Activity<Trip, ()> = Activity::new("book-flight");
const CANCEL_FLIGHT: Activity<Trip, ()> = Activity::new("cancel-flight");
const BOOK_HOTEL: Activity<Trip, ()> = Activity::new("book-hotel");
const CANCEL_HOTEL: Activity<Trip, ()> = Activity::new("cancel-hotel");
const RENT_CAR: Activity<Trip, ()> = Activity::new("rent-car");
const RETURN_CAR: Activity<Trip, ()> = Activity::new("return-car");
const BOOK_TRIP: Orchestration<Trip, ()> = Orchestration::new("book-trip");

/// Stands for all the services behind the activities. There are no cars on the day of trip 2.
async fn call_service(ctx: ActivityContext, trip: Trip) -> Result<(), Failure> {
    let activity = ctx.activity_name();
    if activity == RENT_CAR.name() && trip == 2 {
        println!("  {activity}: no car left");
        return Err(Failure::application("no car left").code("sold-out").non_retryable());
    }
    println!("  {activity}");
    Ok(())
}

async fn book_trip(ctx: Context, trip: Trip) -> Result<(), Failure> {
    let mut undo = Vec::new();
    let Err(failure) = book_all(&ctx, trip, &mut undo).await else { return Ok(()) };
    // Undoing goes on even if the trip is cancelled meanwhile, and is tried long enough to get through.
    let ctx = ctx.shielded();
    for compensation in undo.into_iter().rev() {
        ctx.activity(compensation, trip).attempts(20).await?;
    }
    Err(failure)
}

/// Notes how to undo a step before taking it: a step that failed half-way is undone as well.
async fn book_all(ctx: &Context, trip: Trip, undo: &mut Vec<Activity<Trip, ()>>) -> Result<(), Failure> {
    let steps = [(BOOK_FLIGHT, CANCEL_FLIGHT), (BOOK_HOTEL, CANCEL_HOTEL), (RENT_CAR, RETURN_CAR)];
    for (step, compensation) in steps {
        undo.push(compensation);
        ctx.activity(step, trip).attempts(3).await?;
    }
    Ok(())
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let services = [BOOK_FLIGHT, CANCEL_FLIGHT, BOOK_HOTEL, CANCEL_HOTEL, RENT_CAR, RETURN_CAR];
    let registry = Registry::builder().orchestration(BOOK_TRIP, book_trip);
    let registry =
        services.into_iter().fold(registry, |registry, service| registry.activity(service, call_service));
    let runtime = Runtime::builder(MemoryStore::new()).registry(registry.build()?).start().await?;

    for trip in [1, 2] {
        println!("trip {trip}:");
        match runtime.client().start(BOOK_TRIP, trip).result().await {
            Ok(()) => println!("  booked"),
            Err(error) => {
                let failure = error.failure().map(ToString::to_string).unwrap_or_default();
                println!("  not booked, nothing left behind ({failure})");
            }
        }
    }
    runtime.shutdown(Duration::from_secs(1)).await;
    Ok(())
}
