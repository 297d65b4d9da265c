//! Reads numbers with separators, signs and currencies.

/// Longest number, in bytes.
const LENGTH_MAX: usize = 400;

/// The format of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NumberForm {
    decimal: char,
    thousands: Option<char>,
    /// Whether it may have a fraction.
    pub(super) fraction: bool,
}

/// The setting `thousands` of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Grouping {
    Unsaid,
    Forbidden,
    By(char),
}

impl NumberForm {
    /// Derives the separator that is not given from the given one.
    pub(super) fn new(decimal: Option<char>, grouping: Grouping, fraction: bool) -> Self {
        let by_thousands = if grouping == Grouping::By('.') { ',' } else { '.' };
        let decimal = decimal.unwrap_or(by_thousands);
        let by_decimal = if decimal == ',' { '.' } else { ',' };
        let thousands = match grouping {
            Grouping::Unsaid => Some(by_decimal),
            Grouping::Forbidden => None,
            Grouping::By(separator) => Some(separator),
        };
        Self { decimal, thousands, fraction }
    }

    pub(super) fn is_ambiguous(self) -> bool {
        self.thousands == Some(self.decimal)
    }

    fn separates_groups(self, c: char) -> bool {
        self.thousands.is_some_and(|own| match own {
            // Pages mix the kinds of spaces and apostrophes.
            ' ' | '\u{a0}' | '\u{202f}' | '\u{2009}' => {
                matches!(c, ' ' | '\u{a0}' | '\u{202f}' | '\u{2009}')
            }
            '\'' | '\u{2019}' => matches!(c, '\'' | '\u{2019}'),
            own => own == c,
        })
    }

    /// Returns the number with a decimal point and without groups. `None` if the text is not one.
    pub(super) fn read(self, text: &str) -> Option<String> {
        let text = text.trim();
        let first = text.char_indices().find(|(at, c)| {
            c.is_ascii_digit()
                || *c == self.decimal
                    && text[at + c.len_utf8()..].starts_with(|c: char| c.is_ascii_digit())
        })?;
        let (lead, rest) = text.split_at(first.0);
        let last = rest.rfind(|c: char| c.is_ascii_digit())?;
        let (body, trail) = rest.split_at(last + 1);
        let signs = lead.matches(is_sign).count();
        if body.len() > LENGTH_MAX
            || signs > 1
            || !is_decoration(&lead.replace(is_sign, " "))
            || !is_decoration(trail)
        {
            return None;
        }
        let digits = self.digits(body)?;
        let is_zero = digits.chars().all(|c| matches!(c, '0' | '.'));
        let is_negative = lead.contains(['-', '\u{2212}']) && !is_zero;
        Some(if is_negative { format!("-{digits}") } else { digits })
    }

    fn digits(self, body: &str) -> Option<String> {
        let (whole, fraction) = match body.rsplit_once(self.decimal) {
            Some((whole, fraction)) if self.fraction => (whole, Some(fraction)),
            Some(_) => return None,
            None => (body, None),
        };
        let groups: Vec<&str> = whole.split(|c| self.separates_groups(c)).collect();
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if !groups.iter().all(|group| is_number(group)) || !is_grouped(&groups) {
            return None;
        }
        let mut digits = groups.concat();
        let zeros = digits.bytes().take_while(|byte| *byte == b'0').count();
        digits.drain(..zeros.min(digits.len().saturating_sub(1)));
        if digits.is_empty() {
            digits.push('0');
        }
        if let Some(fraction) = fraction {
            if fraction.is_empty() || !is_number(fraction) {
                return None;
            }
            digits.push('.');
            digits.push_str(fraction);
        }
        Some(digits)
    }
}

/// Groups of three digits, or Indian groups: two digits each and three in the last.
fn is_grouped(groups: &[&str]) -> bool {
    let [first, middle @ .., last] = groups else {
        return true;
    };
    let all = |length: usize| middle.iter().all(|group| group.len() == length);
    last.len() == 3
        && (all(3) && (1..=3).contains(&first.len()) || all(2) && (1..=2).contains(&first.len()))
}

fn is_sign(c: char) -> bool {
    matches!(c, '-' | '+' | '\u{2212}')
}

/// Whether a text has only white space, currency signs, `%` and at most one code such as `EUR`.
fn is_decoration(text: &str) -> bool {
    let is_gap = |c: char| c.is_whitespace() || c == '%' || is_currency(c);
    let mut words = text.split(is_gap).filter(|word| !word.is_empty());
    let is_code =
        |word: &str| word.len() == 3 && word.bytes().all(|byte| byte.is_ascii_uppercase());
    words.next().is_none_or(is_code) && words.next().is_none()
}

/// Unicode's currency symbols.
fn is_currency(c: char) -> bool {
    matches!(
        c,
        '$' | '\u{a2}'..='\u{a5}'
            | '\u{58f}'
            | '\u{60b}'
            | '\u{7fe}'..='\u{7ff}'
            | '\u{9f2}'..='\u{9f3}'
            | '\u{9fb}'
            | '\u{af1}'
            | '\u{bf9}'
            | '\u{e3f}'
            | '\u{17db}'
            | '\u{20a0}'..='\u{20c1}'
            | '\u{a838}'
            | '\u{fdfc}'
            | '\u{fe69}'
            | '\u{ff04}'
            | '\u{ffe0}'..='\u{ffe1}'
            | '\u{ffe5}'..='\u{ffe6}'
            | '\u{11fdd}'..='\u{11fe0}'
            | '\u{1e2ff}'
            | '\u{1ecb0}'
    )
}
