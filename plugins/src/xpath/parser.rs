//! Builds an [`Expression`] from tokens, and checks the kinds of all operands.

use super::XPathError;
use super::expression::{Arithmetic, Comparison, Expression, PathStart, ValueKind};
use super::function::{FUNCTIONS, Function, nearest};
use super::lexer::{PositionedToken, XPathToken, tokens};
use super::location::is_node_type;
use super::simplify;

/// Maximum number of nesting levels. Parsing and evaluating recurse that deep, and threads have small stacks.
const NESTING_MAX: usize = 100;

pub(super) fn parse(text: &str) -> Result<Expression, XPathError> {
    let mut parser = XPathParser { tokens: tokens(text)?, next: 0, depth: 0, height: 0 };
    if *parser.peek() == XPathToken::End {
        return Err(parser.wrong("the expression is empty"));
    }
    let expression = parser.expression()?;
    match parser.peek() {
        XPathToken::End => Ok(expression),
        XPathToken::OpenBracket => {
            Err(parser.wrong("`[ ]` cannot follow here; after `.` write `self::node()[ ]`"))
        }
        other => {
            let why = format!("expected the end of the expression, found {}", other.described());
            Err(parser.wrong(why))
        }
    }
}

pub(super) struct XPathParser {
    tokens: Vec<PositionedToken>,
    next: usize,
    /// Current recursion depth of the parser.
    depth: usize,
    /// Nesting of the expression parsed last. `1+1+1` nests, although the parser does not recurse
    /// for it.
    pub(super) height: usize,
}

/// A binary operator.
#[derive(Clone, Copy)]
enum Infix {
    Or,
    And,
    Compare(Comparison),
    Arithmetic(Arithmetic),
}

impl Infix {
    fn of(token: &XPathToken) -> Option<Self> {
        match token {
            XPathToken::Or => Some(Self::Or),
            XPathToken::And => Some(Self::And),
            XPathToken::Compare(comparison) => Some(Self::Compare(*comparison)),
            XPathToken::Arithmetic(arithmetic) => Some(Self::Arithmetic(*arithmetic)),
            _ => None,
        }
    }

    fn strength(self) -> u8 {
        match self {
            Self::Or => 1,
            Self::And => 2,
            Self::Compare(comparison) if comparison.is_equality() => 3,
            Self::Compare(_) => 4,
            Self::Arithmetic(Arithmetic::Add | Arithmetic::Subtract) => 5,
            Self::Arithmetic(_) => 6,
        }
    }
}

impl XPathParser {
    pub(super) fn peek(&self) -> &XPathToken {
        &self.tokens[self.next].token
    }

    pub(super) fn peek_after(&self) -> &XPathToken {
        let after = (self.next + 1).min(self.tokens.len() - 1);
        &self.tokens[after].token
    }

    /// Moves to the next token, but never past the last.
    pub(super) fn skip(&mut self) {
        self.next = (self.next + 1).min(self.tokens.len() - 1);
    }

    pub(super) fn skip_if(&mut self, wanted: &XPathToken) -> bool {
        let found = self.peek() == wanted;
        if found {
            self.skip();
        }
        found
    }

    pub(super) fn expect(&mut self, wanted: &XPathToken, after: &str) -> Result<(), XPathError> {
        if self.skip_if(wanted) {
            return Ok(());
        }
        let (wanted, found) = (wanted.described(), self.peek().described());
        Err(self.wrong(format!("expected {wanted} {after}, found {found}")))
    }

    pub(super) fn wrong(&self, message: impl Into<String>) -> XPathError {
        XPathError::new(message, self.tokens[self.next].at)
    }

    fn check_nesting(&self, levels: usize) -> Result<(), XPathError> {
        if levels <= NESTING_MAX {
            return Ok(());
        }
        Err(self.wrong(format!("expression is nested more than {NESTING_MAX} levels deep")))
    }

    pub(super) fn expression(&mut self) -> Result<Expression, XPathError> {
        self.depth += 1;
        self.check_nesting(self.depth)?;
        let expression = self.infix(0)?;
        self.depth -= 1;
        self.check_nesting(self.height)?;
        Ok(expression)
    }

    /// Parses operands joined by operators that bind more strongly than `floor`.
    fn infix(&mut self, floor: u8) -> Result<Expression, XPathError> {
        let mut left = self.negation()?;
        let mut height = self.height;
        while let Some(operator) = Infix::of(self.peek()).filter(|next| next.strength() > floor) {
            self.skip();
            let right = self.infix(operator.strength())?;
            // Operands of consecutive `or` or `and` are kept in one flat list, so they do not nest.
            let flat = matches!(
                (operator, &left),
                (Infix::Or, Expression::Or(_)) | (Infix::And, Expression::And(_))
            );
            height = if flat { height.max(self.height + 1) } else { height.max(self.height) + 1 };
            self.check_nesting(height)?;
            left = match operator {
                Infix::Or => simplify::or(left, right),
                Infix::And => simplify::and(left, right),
                Infix::Compare(comparison) => simplify::compare(comparison, left, right),
                Infix::Arithmetic(arithmetic) => simplify::arithmetic(arithmetic, left, right),
            };
        }
        self.height = height;
        Ok(left)
    }

    fn negation(&mut self) -> Result<Expression, XPathError> {
        let mut signs = 0_usize;
        while self.skip_if(&XPathToken::Arithmetic(Arithmetic::Subtract)) {
            signs += 1;
        }
        let operand = self.union()?;
        if signs == 0 {
            return Ok(operand);
        }
        self.height += 1;
        Ok(simplify::negate(operand, signs % 2 == 1))
    }

    fn union(&mut self) -> Result<Expression, XPathError> {
        let at = self.next;
        let first = self.path()?;
        if *self.peek() != XPathToken::Pipe {
            return Ok(first);
        }
        self.check_nodes(&first, at, "`|` joins only nodes")?;
        let mut height = self.height;
        let mut parts = vec![first];
        while self.skip_if(&XPathToken::Pipe) {
            let at = self.next;
            let part = self.path()?;
            self.check_nodes(&part, at, "`|` joins only nodes")?;
            height = height.max(self.height);
            parts.push(part);
        }
        self.height = height + 1;
        Ok(Expression::Union(parts))
    }

    fn check_nodes(&self, part: &Expression, token: usize, why: &str) -> Result<(), XPathError> {
        let what = match part.kind() {
            ValueKind::Nodes => return Ok(()),
            ValueKind::Text => "a string",
            ValueKind::Number => "a number",
            ValueKind::Boolean => "true or false",
        };
        let at = self.tokens[token].at;
        Err(XPathError::new(format!("{why}, but this is {what}"), at))
    }

    fn path(&mut self) -> Result<Expression, XPathError> {
        self.height = 0;
        let mut steps = Vec::new();
        let start = match self.peek() {
            XPathToken::Slash => {
                self.skip();
                if self.step_follows() {
                    self.steps(&mut steps)?;
                }
                PathStart::Root
            }
            XPathToken::SlashSlash => {
                self.more_steps(&mut steps)?;
                PathStart::Root
            }
            XPathToken::OpenParen | XPathToken::Literal(_) | XPathToken::Number(_) => {
                return self.filter();
            }
            XPathToken::Name(name)
                if *self.peek_after() == XPathToken::OpenParen && !is_node_type(&name.folded) =>
            {
                return self.filter();
            }
            _ => {
                self.steps(&mut steps)?;
                PathStart::Context
            }
        };
        self.height += 1;
        Ok(simplify::path(start, steps))
    }

    /// Parses a primary expression, its predicates, and the steps that follow.
    fn filter(&mut self) -> Result<Expression, XPathError> {
        let at = self.next;
        let primary = self.primary()?;
        let continues = matches!(
            self.peek(),
            XPathToken::OpenBracket | XPathToken::Slash | XPathToken::SlashSlash
        );
        if !continues {
            return Ok(primary);
        }
        self.check_nodes(&primary, at, "`[ ]` and `/` can follow only nodes")?;
        let predicates = self.predicates()?;
        let mut steps = Vec::new();
        self.more_steps(&mut steps)?;
        self.height += 1;
        Ok(simplify::filter(primary, predicates, steps))
    }

    fn primary(&mut self) -> Result<Expression, XPathError> {
        self.height = 1;
        let expression = match self.peek().clone() {
            XPathToken::Literal(text) => Expression::Literal(text.into()),
            XPathToken::Number(number) => Expression::Number(number),
            XPathToken::Name(name) => return self.call(&name.folded),
            _ => {
                self.skip();
                let inner = self.expression()?;
                self.expect(&XPathToken::CloseParen, "to close `(`")?;
                return Ok(inner);
            }
        };
        self.skip();
        Ok(expression)
    }

    fn call(&mut self, name: &str) -> Result<Expression, XPathError> {
        let row = FUNCTIONS.iter().find(|(known, ..)| *known == name);
        let Some(&(_, function, fewest, most)) = row else {
            let known = FUNCTIONS.iter().map(|(known, ..)| *known);
            return Err(self.unknown("function", name, known));
        };
        let at = self.next;
        self.skip();
        self.skip();
        let mut arguments = Vec::new();
        let mut height = 0;
        while *self.peek() != XPathToken::CloseParen {
            if !arguments.is_empty() {
                self.expect(&XPathToken::Comma, "between arguments")?;
            }
            let start = self.next;
            let argument = self.expression()?;
            if function.wants_nodes() {
                self.check_nodes(&argument, start, &format!("`{name}()` takes nodes"))?;
            }
            height = height.max(self.height);
            arguments.push(argument);
        }
        self.skip();
        if arguments.len() < fewest || arguments.len() > most {
            let why = format!("`{name}()` does not take {} argument(s)", arguments.len());
            return Err(XPathError::new(why, self.tokens[at].at));
        }
        if arguments.is_empty() && function.defaults_to_context() {
            arguments.push(Expression::here());
        }
        self.height = height + 1;
        Ok(match function {
            Function::True => Expression::Boolean(true),
            Function::False => Expression::Boolean(false),
            _ => Expression::Call(function, arguments),
        })
    }

    pub(super) fn unknown<'n>(
        &self,
        what: &str,
        name: &str,
        known: impl Iterator<Item = &'n str>,
    ) -> XPathError {
        let hint =
            nearest(name, known).map_or(String::new(), |near| format!("; did you mean `{near}`?"));
        self.wrong(format!("XPath 1.0 has no {what} `{name}`{hint}"))
    }
}
