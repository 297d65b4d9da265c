//! `spoonbill failed`: the failed jobs of the last run, as JSON lines.

use clap::Args;

use super::{CommandResult, RunCommand, SettingArgs, expect_run, print_out, secrets};
use crate::bootstrap::Node;
use crate::ledger::JobId;
use crate::plan::publish::PublishedPlan;
use crate::store::{Answer, Question, StoreError};

#[derive(Debug, Args)]
pub(super) struct FailedArgs {
    #[command(flatten)]
    settings: SettingArgs,
}

impl RunCommand for FailedArgs {
    fn run(&self) -> CommandResult {
        let config = self.settings.resolve(None)?;
        expect_run(&config.store.data_dir, "")?;
        let node = Node::read(&config)?;
        let listed = list(&node);
        node.close();
        listed
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

fn list(node: &Node) -> CommandResult {
    keep_secrets(node)?;
    let mut after: Option<JobId> = None;
    loop {
        let question = Question::Failed { after, limit: 500 };
        let Answer::Failed(batch) = node.store.ask_blocking(question)? else {
            return Ok(0);
        };
        let Some((last, _)) = batch.last() else {
            return Ok(0);
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
        print_out(&secrets::hide(&lines.collect::<String>()))?;
    }
}
