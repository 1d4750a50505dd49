//! Processes of a measurement: ended when they are dropped, and read line by line.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Lines, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, bail, ensure};

use super::ADDRESS_MARK;
use crate::arguments::RemotePart;

/// A process.
pub struct Child {
    process: std::process::Child,
    lines: Mutex<Lines<BufReader<Box<dyn Read + Send>>>>,
    /// Where it listens, once it has printed that.
    pub address: Option<String>,
}

impl Child {
    /// A server, whose lines are those of its log.
    pub fn server(program: &Path, arguments: &[&str], store: &str) -> anyhow::Result<Child> {
        let mut command = Command::new(program);
        command.args(arguments).stdout(Stdio::null()).stderr(Stdio::piped());
        let settings = std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("SEGNO_"));
        settings.for_each(|(name, _)| {
            command.env_remove(name);
        });
        command.env("SEGNO_STORE__URL", store).env("SEGNO_BENCH_SECRET", SECRET);
        let mut process = command.spawn()?;
        let lines = process.stderr.take().context("the server has no standard error")?;
        Ok(Child::of(process, Box::new(lines)))
    }

    /// This program again, as a part of the measurement.
    pub fn part(part: RemotePart, server: &str) -> anyhow::Result<Child> {
        let part = match part {
            RemotePart::Worker => "worker",
            RemotePart::Clients => "clients",
        };
        let mut command = Command::new(std::env::current_exe()?);
        command.args(std::env::args_os().skip(1));
        command.args(["--part", part, "--peer", server].map(OsStr::new)).stdout(Stdio::piped());
        let mut process = command.spawn()?;
        let lines = process.stdout.take().context("a part has no standard output")?;
        Ok(Child::of(process, Box::new(lines)))
    }

    fn of(process: std::process::Child, lines: Box<dyn Read + Send>) -> Child {
        let lines = Mutex::new(BufReader::new(lines).lines());
        Child { process, lines, address: None }
    }

    /// Its number.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// The next line that it prints.
    pub fn next_line(&self) -> anyhow::Result<String> {
        match self.lines.lock().unwrap_or_else(PoisonError::into_inner).next() {
            Some(line) => Ok(line?),
            None => bail!("process {} ended too early", self.id()),
        }
    }

    /// Waits for a line.
    pub fn wait_for(&self, expected: &str) -> anyhow::Result<()> {
        while self.next_line()? != expected {}
        Ok(())
    }

    /// Waits until it has printed where it listens.
    pub fn wait_for_address(&mut self) -> anyhow::Result<String> {
        let mut printed = Vec::new();
        loop {
            let Ok(line) = self.next_line() else { bail!("it printed only: {}", printed.join("\n")) };
            // As text, and as a line of a log in JSON.
            let marks = [ADDRESS_MARK, r#""address":"127.0.0.1:"#];
            if let Some((_, rest)) = marks.iter().find_map(|mark| line.split_once(mark)) {
                let port: String = rest.chars().take_while(char::is_ascii_digit).collect();
                let address = format!("{ADDRESS_MARK}{port}");
                self.address = Some(address.clone());
                return Ok(address);
            }
            printed.push(line);
        }
    }

    /// Ends it in order, so that its store can be opened again.
    pub fn stop(mut self) -> anyhow::Result<()> {
        let asked = Command::new("kill").arg(self.id().to_string()).status()?;
        ensure!(asked.success(), "process {} could not be stopped", self.id());
        self.process.wait()?;
        Ok(())
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// What pushed calls are signed with: 24 bytes, as Standard Webhooks have it.
const SECRET: &str = "whsec_c2Vnbm8tYmVuY2gtc2VjcmV0LTAwMDE=";
