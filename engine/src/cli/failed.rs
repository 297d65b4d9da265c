//! `spoonbill failed`: the failed jobs of the last run, as JSON lines.

use super::{SettingArgs, expect_run, print_err, print_out, secrets};
use crate::bootstrap::Node;
use crate::ledger::JobId;
use crate::plan::publish::PublishedPlan;
use crate::run::exit_code;
use crate::store::{Answer, Question, StoreError};

pub(super) fn failed(settings: &SettingArgs) -> u8 {
    let config = match settings.resolve(None, None) {
        Ok(config) => config,
        Err(code) => return code,
    };
    let dir = &config.store.data_dir;
    if let Err(code) = expect_run(dir, "") {
        return code;
    }
    let node = match Node::read(&config) {
        Ok(node) => node,
        Err(error) => {
            print_err(&format!("error: {error}\n"));
            return exit_code::of_error(&error.into());
        }
    };
    let listed = list(&node);
    node.close();
    match listed {
        Ok(()) => 0,
        Err(error) => {
            print_err(&format!("error: {error}\n"));
            1
        }
    }
}

/// Hides the secrets of the last run's definitions in all output.
pub(super) fn keep_secrets(node: &Node) -> Result<(), StoreError> {
    let Answer::Run(Some(run)) = node.store.ask_blocking(Question::Run)? else {
        return Ok(());
    };
    if let Answer::Blob(Some(blob)) = node.store.ask_blocking(Question::Blob(run.plan.defs))?
        && let Ok(published) = postcard::from_bytes::<PublishedPlan>(&blob)
    {
        secrets::keep(&published.secrets);
    }
    Ok(())
}

fn list(node: &Node) -> Result<(), StoreError> {
    keep_secrets(node)?;
    let mut after: Option<JobId> = None;
    loop {
        let question = Question::Failed { after, limit: 500 };
        let Answer::Failed(batch) = node.store.ask_blocking(question)? else {
            return Ok(());
        };
        let Some((last, _)) = batch.last() else {
            return Ok(());
        };
        after = Some(*last);
        let lines = batch.iter().map(|(_, failed)| {
            let job = &failed.job.new;
            // A followed page may have no locator name.
            let name = if job.name.is_empty() { &job.url } else { &job.name };
            let line = serde_json::json!({
                "name": name, "group": job.group, "url": job.url, "depth": job.depth,
                "tasks": failed.job.tasks, "reasons": failed.reasons,
            });
            format!("{line}\n")
        });
        print_out(&secrets::hide(&lines.collect::<String>()))
            .map_err(|error| StoreError::Failed(error.to_string()))?;
    }
}
