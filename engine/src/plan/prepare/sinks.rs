//! Appenders and encoders of the append steps. Steps that name the same target share one appender.

use std::sync::Arc;

use spoonbill_defs::{PluginDef, Problem, Step};
use spoonbill_plugins::appender::{self, OutputTarget};
use spoonbill_plugins::encoder::{self, Encoder};

use crate::plan::prepare::PlanCompiler;
use crate::plan::prepare::records::Takes;

/// An appender of the run.
#[derive(Debug, Clone)]
pub(crate) struct AppenderSpec {
    /// Where its rows go.
    pub target: Arc<dyn OutputTarget>,
    /// The bytes before the first row.
    pub header: Vec<u8>,
}

/// Where an append step sends rows: an encoder, then an appender.
#[derive(Debug, Clone)]
pub(crate) struct Sink {
    /// Number of the appender.
    pub appender: u32,
    /// Turns rows into bytes.
    pub encoder: Arc<dyn Encoder>,
}

/// Whether a class is Scoopi's appender for programs that embed the engine.
fn is_list_appender(class: &str) -> bool {
    matches!(class, "list" | "org.codetab.scoopi.plugin.appender.ListAppender")
}

impl PlanCompiler<'_> {
    pub(super) fn sinks(&mut self, step: &Step, takes: &Takes) -> Option<Vec<Sink>> {
        if step.plugins.is_empty() {
            let help = "add a plugin with class `file`".to_owned();
            let message =
                format!("step `{}` has no appender: its rows would be lost", step.name.text);
            self.error(step.name.at, message, Some(help));
            return None;
        }
        let mut all = Some(Vec::new());
        for plugin in &step.plugins {
            if is_list_appender(&plugin.class.text) {
                let words = "a `list` appender keeps rows for embedders; here they go nowhere";
                self.problems.push(Problem::warning(self.sources, plugin.class.at, words));
                continue;
            }
            match (self.sink(plugin, takes), &mut all) {
                (Some(sink), Some(all)) => all.push(sink),
                _ => all = None,
            }
        }
        all
    }

    fn sink(&mut self, plugin: &PluginDef, takes: &Takes) -> Option<Sink> {
        let target = self.options(appender::from_def(plugin));
        let encoder = self.encoder(plugin, takes);
        let (target, encoder) = (target?, encoder?);
        let header = takes.columns().map(|columns| encoder.header(&columns)).unwrap_or_default();
        let known = self.appenders.iter().position(|spec| spec.target.name() == target.name());
        if known.is_some_and(|known| self.appenders[known].header != header) {
            let at = plugin.option("file").map_or(plugin.name.at, |text| text.at);
            let message = format!("another task writes `{}` with other columns", target.name());
            let help = "give each task its own file: `output: NAME.csv`".to_owned();
            self.error(at, message, Some(help));
            return None;
        }
        let appender = known.unwrap_or_else(|| {
            self.appenders.push(AppenderSpec { target, header });
            self.appenders.len() - 1
        });
        Some(Sink { appender: appender as u32, encoder })
    }

    fn encoder(&mut self, plugin: &PluginDef, takes: &Takes) -> Option<Arc<dyn Encoder>> {
        let mut made = None;
        for nested in &plugin.plugins {
            let encoder = encoder::from_def(nested);
            made = self.options(encoder);
            made.as_ref()?;
        }
        if plugin.plugins.is_empty() {
            let help = "add `plugins: [ plugin: { name: csv, class: csv } ]` to it".to_owned();
            let message = format!("appender `{}` has no encoder", plugin.name.text);
            self.error(plugin.name.at, message, Some(help));
        }
        let mut made = made?;
        if let Takes::Record(plan) = takes {
            made.set_types(&plan.column_types());
        }
        Some(Arc::from(made))
    }
}
