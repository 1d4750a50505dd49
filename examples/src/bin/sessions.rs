//! Sessions keep activities of one job on one worker, so that they can share what is only there: a file, a cache, a loaded
//! model. Two workers share the work here, and each video stays with the worker that downloaded it.
//!
//! Run it: `cargo run -p segno-examples --bin sessions`

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use segno::store::memory::MemoryStore;
use segno::{Activity, ActivityContext, Context, Failure, Orchestration, Registry, Runtime, RuntimeOptions};

const DOWNLOAD: Activity<String, ()> = Activity::new("download");
const CUT: Activity<String, ()> = Activity::new("cut");
const UPLOAD: Activity<String, ()> = Activity::new("upload");
const PUBLISH: Orchestration<String, ()> = Orchestration::new("publish-video");

/// The disk of one worker.
#[derive(Default)]
struct Disk(Mutex<HashSet<String>>);

impl Disk {
    fn files(&self) -> std::sync::MutexGuard<'_, HashSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn download(self: Arc<Self>, _ctx: ActivityContext, video: String) -> Result<(), Failure> {
        self.files().insert(video);
        Ok(())
    }

    /// Works only where the video was downloaded.
    async fn use_file(self: Arc<Self>, ctx: ActivityContext, video: String) -> Result<(), Failure> {
        if self.files().contains(&video) {
            return Ok(());
        }
        Err(Failure::application(format!("{video} is not on the disk of {}", ctx.worker_id()))
            .non_retryable())
    }
}

async fn publish(ctx: Context, video: String) -> Result<(), Failure> {
    let session = format!("video-{video}");
    ctx.activity(DOWNLOAD, video.clone()).session(&session).await?;
    ctx.activity(CUT, video.clone()).session(&session).await?;
    ctx.activity(UPLOAD, video).session(&session).await
}

async fn start_worker(name: &str, store: Arc<MemoryStore>, disk: Arc<Disk>) -> anyhow::Result<Runtime> {
    let registry = Registry::builder()
        .orchestration(PUBLISH, publish)
        .activities(disk, |disk| {
            disk.activity(DOWNLOAD, Disk::download)
                .activity(CUT, Disk::use_file)
                .activity(UPLOAD, Disk::use_file)
        })
        .build()?;
    let options = RuntimeOptions { node_id: Some(name.to_owned()), ..RuntimeOptions::default() };
    Ok(Runtime::builder(store).registry(registry).options(options).start().await?)
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let store = MemoryStore::new();
    let disks: [Arc<Disk>; 2] = Default::default();
    let first = start_worker("worker-1", store.clone(), disks[0].clone()).await?;
    let second = start_worker("worker-2", store, disks[1].clone()).await?;

    let videos: Vec<String> = (1..=8).map(|number| format!("holiday-{number}")).collect();
    for video in &videos {
        first.client().start(PUBLISH, video.clone()).id(format!("publish-{video}")).await?;
    }
    for video in &videos {
        first.client().result(PUBLISH, format!("publish-{video}")).await?;
    }

    let downloads: usize = disks.iter().map(|disk| disk.files().len()).sum();
    println!("{} videos published by 2 workers", videos.len());
    println!("{downloads} downloads: each video was on one disk only, and all its steps ran there");

    first.shutdown(Duration::from_secs(1)).await;
    second.shutdown(Duration::from_secs(1)).await;
    Ok(())
}
