//! What can be read of a ledger in SQLite tables, whoever keeps it.

use super::sqlite::SqliteTables;
use super::{Answer, Question};
use crate::ledger::{Ledger, TableResult, Tables};

/// Reads what has been applied.
pub(super) fn answer(
    ledger: &mut Ledger<SqliteTables>,
    question: &Question,
) -> TableResult<Answer> {
    let run = ledger.core().run.as_ref();
    let extent = run.map_or((0, 0), |run| (run.output_seq, run.plan.appenders));
    match question {
        Question::Run => return Ok(Answer::Run(ledger.core().run.clone().map(Box::new))),
        Question::Crossed { session, name } => {
            return Ok(Answer::Crossed(ledger.crossed(*session, name)));
        }
        _ => {}
    }
    let tables = ledger.tables_mut();
    Ok(match *question {
        Question::Blob(hash) => Answer::Blob(tables.blob(hash)?),
        Question::Output { appender, after, bytes_max } => {
            Answer::Output(tables.output(appender, after, bytes_max, extent)?)
        }
        Question::CanonicalOutput { appender, after, bytes_max } => {
            Answer::Output(tables.canonical_output(appender, after, bytes_max, extent)?)
        }
        Question::Failed { after, limit } => Answer::Failed(tables.failed(after, limit)?),
        Question::Run | Question::Crossed { .. } | Question::Flush => Answer::Flushed,
    })
}
