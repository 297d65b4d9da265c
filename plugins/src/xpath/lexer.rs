//! Splits an expression into tokens, and converts names to lower case where HtmlUnit ignores case.

use super::XPathError;
use super::expression::{Arithmetic, Comparison};
use super::number::is_space;

/// Longest expression, in characters.
const LENGTH_MAX: usize = 65_536;

/// A name, in lower case where case is ignored. `given` is the name as written, if it differs.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FoldedName {
    pub(super) folded: String,
    pub(super) given: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum XPathToken {
    Slash,
    SlashSlash,
    OpenParen,
    CloseParen,
    OpenBracket,
    CloseBracket,
    At,
    Comma,
    Colons,
    Dot,
    DotDot,
    Pipe,
    Or,
    And,
    Compare(Comparison),
    Arithmetic(Arithmetic),
    /// `*` as a node test.
    Star,
    /// `prefix:*`. The name ends in the colon.
    PrefixStar(FoldedName),
    Name(FoldedName),
    Literal(String),
    Number(f64),
    End,
}

impl XPathToken {
    /// Whether an operand must follow. Then `*` is a node test and a word is a name; otherwise both
    /// are operators.
    fn wants_operand(&self) -> bool {
        matches!(
            self,
            Self::Slash
                | Self::SlashSlash
                | Self::OpenParen
                | Self::OpenBracket
                | Self::At
                | Self::Comma
                | Self::Colons
                | Self::Pipe
                | Self::Or
                | Self::And
                | Self::Compare(_)
                | Self::Arithmetic(_)
        )
    }

    /// The token as error messages show it.
    pub(super) fn described(&self) -> String {
        match self {
            Self::End => "the end".to_owned(),
            Self::Name(name) | Self::PrefixStar(name) => format!("`{}`", name.folded),
            Self::Literal(text) => format!("the text '{text}'"),
            Self::Number(number) => format!("the number {number}"),
            Self::Slash => "`/`".to_owned(),
            Self::SlashSlash => "`//`".to_owned(),
            Self::OpenParen => "`(`".to_owned(),
            Self::CloseParen => "`)`".to_owned(),
            Self::OpenBracket => "`[`".to_owned(),
            Self::CloseBracket => "`]`".to_owned(),
            Self::At => "`@`".to_owned(),
            Self::Comma => "`,`".to_owned(),
            Self::Colons => "`::`".to_owned(),
            Self::Dot => "`.`".to_owned(),
            Self::DotDot => "`..`".to_owned(),
            Self::Pipe => "`|`".to_owned(),
            Self::Star => "`*`".to_owned(),
            Self::Or => "`or`".to_owned(),
            Self::And => "`and`".to_owned(),
            Self::Compare(_) => "a comparison".to_owned(),
            Self::Arithmetic(_) => "an arithmetic operator".to_owned(),
        }
    }
}

/// A token and its position in characters.
#[derive(Debug, Clone)]
pub(super) struct PositionedToken {
    pub(super) token: XPathToken,
    pub(super) at: usize,
}

/// Splits `text` into tokens; the last one is always [`XPathToken::End`].
pub(super) fn tokens(text: &str) -> Result<Vec<PositionedToken>, XPathError> {
    let chars: Vec<char> = text.chars().take(LENGTH_MAX + 1).collect();
    if chars.len() > LENGTH_MAX {
        return Err(XPathError::new(
            format!("expression is longer than {LENGTH_MAX} characters"),
            LENGTH_MAX,
        ));
    }
    let mut lexer = Lexer { chars, at: 0, open: 0, out: Vec::new() };
    while let Some(c) = lexer.peek(0) {
        if is_space(c) {
            lexer.at += 1;
            continue;
        }
        let at = lexer.at;
        let token = lexer.token(c)?;
        lexer.out.push(PositionedToken { token, at });
    }
    lexer.out.push(PositionedToken { token: XPathToken::End, at: lexer.at });
    Ok(lexer.out)
}

struct Lexer {
    chars: Vec<char>,
    at: usize,
    /// Number of open brackets and parentheses. Inside them, names keep their case.
    open: usize,
    out: Vec<PositionedToken>,
}

impl Lexer {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    /// Whether an operand must come next.
    fn expects_operand(&self) -> bool {
        self.out.last().is_none_or(|last| last.token.wants_operand())
    }

    fn token(&mut self, c: char) -> Result<XPathToken, XPathError> {
        if matches!(c, '"' | '\'') {
            return self.literal(c);
        }
        let digit_follows = self.peek(1).is_some_and(|next| next.is_ascii_digit());
        if c.is_ascii_digit() || (c == '.' && digit_follows) {
            return self.number();
        }
        if is_name_start(c) {
            return self.name();
        }
        let (token, length) = self.symbol(c)?;
        self.at += length;
        match token {
            XPathToken::OpenParen | XPathToken::OpenBracket => self.open += 1,
            XPathToken::CloseParen | XPathToken::CloseBracket => {
                self.open = self.open.saturating_sub(1);
            }
            _ => {}
        }
        Ok(token)
    }

    fn symbol(&self, c: char) -> Result<(XPathToken, usize), XPathError> {
        let next = self.peek(1);
        Ok(match (c, next) {
            ('/', Some('/')) => (XPathToken::SlashSlash, 2),
            ('/', _) => (XPathToken::Slash, 1),
            ('.', Some('.')) => (XPathToken::DotDot, 2),
            ('.', _) => (XPathToken::Dot, 1),
            (':', Some(':')) => (XPathToken::Colons, 2),
            ('!', Some('=')) => (XPathToken::Compare(Comparison::NotEqual), 2),
            ('<', Some('=')) => (XPathToken::Compare(Comparison::LessEqual), 2),
            ('>', Some('=')) => (XPathToken::Compare(Comparison::GreaterEqual), 2),
            ('<', _) => (XPathToken::Compare(Comparison::Less), 1),
            ('>', _) => (XPathToken::Compare(Comparison::Greater), 1),
            ('=', _) => (XPathToken::Compare(Comparison::Equal), 1),
            ('(', _) => (XPathToken::OpenParen, 1),
            (')', _) => (XPathToken::CloseParen, 1),
            ('[', _) => (XPathToken::OpenBracket, 1),
            (']', _) => (XPathToken::CloseBracket, 1),
            ('@', _) => (XPathToken::At, 1),
            (',', _) => (XPathToken::Comma, 1),
            ('|', _) => (XPathToken::Pipe, 1),
            ('+', _) => (XPathToken::Arithmetic(Arithmetic::Add), 1),
            ('-', _) => (XPathToken::Arithmetic(Arithmetic::Subtract), 1),
            ('*', _) if self.expects_operand() => (XPathToken::Star, 1),
            ('*', _) => (XPathToken::Arithmetic(Arithmetic::Multiply), 1),
            ('$', _) => {
                let why = "variables such as `$x` are not supported";
                return Err(XPathError::new(why, self.at));
            }
            _ => {
                let why = format!("unexpected character `{c}`");
                return Err(XPathError::new(why, self.at));
            }
        })
    }

    fn literal(&mut self, quote: char) -> Result<XPathToken, XPathError> {
        let start = self.at + 1;
        let length = self.chars[start..].iter().position(|c| *c == quote);
        let Some(length) = length else {
            let why = format!("the quote {quote} is never closed");
            return Err(XPathError::new(why, self.at));
        };
        self.at = start + length + 1;
        Ok(XPathToken::Literal(self.chars[start..start + length].iter().collect()))
    }

    fn number(&mut self) -> Result<XPathToken, XPathError> {
        let start = self.at;
        self.skip(|c| c.is_ascii_digit());
        if self.peek(0) == Some('.') {
            self.at += 1;
            self.skip(|c| c.is_ascii_digit());
        }
        let text: String = self.chars[start..self.at].iter().collect();
        text.parse()
            .map(XPathToken::Number)
            .map_err(|_| XPathError::new(format!("`{text}` is not a number"), start))
    }

    fn skip(&mut self, wanted: impl Fn(char) -> bool) {
        while self.peek(0).is_some_and(&wanted) {
            self.at += 1;
        }
    }

    fn name(&mut self) -> Result<XPathToken, XPathError> {
        let start = self.at;
        self.skip(is_name_part);
        if self.expects_operand() {
            let mut star = false;
            if self.peek(0) == Some(':') {
                if self.peek(1).is_some_and(is_name_start) {
                    self.at += 1;
                    self.skip(is_name_part);
                } else if self.peek(1) == Some('*') {
                    self.at += 1;
                    star = true;
                }
            }
            let name = self.folded(self.chars[start..self.at].iter().collect());
            self.at += usize::from(star);
            return Ok(if star { XPathToken::PrefixStar(name) } else { XPathToken::Name(name) });
        }
        let word = self.folded(self.chars[start..self.at].iter().collect());
        match word.folded.as_str() {
            "or" => Ok(XPathToken::Or),
            "and" => Ok(XPathToken::And),
            "div" => Ok(XPathToken::Arithmetic(Arithmetic::Divide)),
            "mod" => Ok(XPathToken::Arithmetic(Arithmetic::Modulo)),
            other => {
                let why = format!("expected an operator such as `and` or `=`, found `{other}`");
                Err(XPathError::new(why, start))
            }
        }
    }

    fn folded(&self, given: String) -> FoldedName {
        let after_at = matches!(self.out.last(), Some(last) if last.token == XPathToken::At);
        if self.open > 0 && !after_at {
            return FoldedName { folded: given, given: None };
        }
        let folded = given.to_ascii_lowercase();
        let given = (folded != given).then_some(given);
        FoldedName { folded, given }
    }
}

fn is_name_start(c: char) -> bool {
    c.is_alphabetic() || c == '_'
}

fn is_name_part(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '\u{b7}')
}
