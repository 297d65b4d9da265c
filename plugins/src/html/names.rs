//! The table of known names: those that pages are likely to use, with their numbers.

use super::name::{LocalName, NameId};

/// Numbers and texts. The names with a constant come first. The names that SVG spells with capitals
/// follow twice: in lower case, as the tokenizer reads them, then in SVG's spelling.
macro_rules! known_names {
    ($($constant:ident $text:literal,)* ; $($lower:literal $camel:literal,)*) => {
        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        enum KnownNameIndex { $($constant,)* COUNT }

        $(#[allow(dead_code)]
        pub(super) const $constant: NameId = NameId::known(KnownNameIndex::$constant as u16);)*

        /// Number of the first name that SVG spells with capitals.
        pub(super) const SVG_FIRST: u32 = KnownNameIndex::COUNT as u32;
        /// Count of the names that SVG spells with capitals.
        pub(super) const SVG_COUNT: u32 = [$($lower,)*].len() as u32;
        /// Count of all known names, both spellings of SVG's names included.
        pub(super) const KNOWN: usize = SVG_FIRST as usize + 2 * SVG_COUNT as usize;

        /// The names by number, as text.
        pub(super) static TEXTS: [&str; KNOWN] = [$($text,)* $($lower,)* $($camel,)*];

        /// The names by number, as the tree returns them.
        pub(super) static NAMES: [LocalName; KNOWN] = {
            let mut next = 0;
            [
                $(LocalName::known({ let _ = $text; next += 1; next - 1 }),)*
                $(LocalName::known({ let _ = $lower; next += 1; next - 1 }),)*
                $(LocalName::known({ let _ = $camel; next += 1; next - 1 }),)*
            ]
        };
    };
}

/// Of the names with capitals, the first 36 name elements only. The 37th names both an element and
/// an attribute, and the rest name attributes.
pub(super) const SVG_ELEMENTS: u32 = 36;

/// `foreignobject` in lower case, the only name with capitals that the parser's rules mention.
pub(super) const FOREIGN_OBJECT: NameId = NameId::from_raw(SVG_FIRST + 32);

known_names! {
    // Elements.
    A "a", ABBR "abbr", ACRONYM "acronym", ADDRESS "address", APPLET "applet", AREA "area",
    ARTICLE "article", ASIDE "aside", AUDIO "audio", B "b", BASE "base", BASEFONT "basefont",
    BDI "bdi", BDO "bdo", BGSOUND "bgsound", BIG "big", BLINK "blink", BLOCKQUOTE "blockquote",
    BODY "body", BR "br", BUTTON "button", CANVAS "canvas", CAPTION "caption", CENTER "center",
    CITE "cite", CODE "code", COL "col", COLGROUP "colgroup", COMMAND "command",
    CONTENT "content", DATA "data", DATALIST "datalist", DD "dd", DEL "del", DETAILS "details",
    DFN "dfn", DIALOG "dialog", DIR "dir", DIV "div", DL "dl", DT "dt", EM "em", EMBED "embed",
    FIELDSET "fieldset", FIGCAPTION "figcaption", FIGURE "figure", FONT "font", FOOTER "footer",
    FORM "form", FRAME "frame", FRAMESET "frameset", H1 "h1", H2 "h2", H3 "h3", H4 "h4", H5 "h5",
    H6 "h6", HEAD "head", HEADER "header", HGROUP "hgroup", HR "hr", HTML "html", I "i",
    IFRAME "iframe", IMAGE "image", IMG "img", INPUT "input", INS "ins", ISINDEX "isindex",
    KBD "kbd", KEYGEN "keygen", LABEL "label", LEGEND "legend", LI "li", LINK "link",
    LISTING "listing", MAIN "main", MAP "map", MARK "mark", MARQUEE "marquee", MATH "math",
    MENU "menu", MENUITEM "menuitem", META "meta", METER "meter", NAV "nav", NOBR "nobr",
    NOEMBED "noembed", NOFRAMES "noframes", NOSCRIPT "noscript", OBJECT "object", OL "ol",
    OPTGROUP "optgroup", OPTION "option", OUTPUT "output", P "p", PARAM "param",
    PICTURE "picture", PLAINTEXT "plaintext", PORTAL "portal", PRE "pre", PROGRESS "progress",
    Q "q", RB "rb", RP "rp", RT "rt", RTC "rtc", RUBY "ruby", S "s", SAMP "samp", SCRIPT "script",
    SEARCH "search", SECTION "section", SELECT "select", SELECTEDCONTENT "selectedcontent",
    SHADOW "shadow", SLOT "slot", SMALL "small", SOURCE "source", SPACER "spacer", SPAN "span",
    STRIKE "strike", STRONG "strong", STYLE "style", SUB "sub", SUMMARY "summary", SUP "sup",
    SVG "svg", TABLE "table", TBODY "tbody", TD "td", TEMPLATE "template", TEXTAREA "textarea",
    TFOOT "tfoot", TH "th", THEAD "thead", TIME "time", TITLE "title", TR "tr", TRACK "track",
    TT "tt", U "u", UL "ul", VAR "var", VIDEO "video", WBR "wbr", XMP "xmp",
    ANNOTATION "annotation", ANNOTATION_XML "annotation-xml", MACTION "maction",
    MALIGNMARK "malignmark", MERROR "merror", MFRAC "mfrac", MGLYPH "mglyph", MI "mi",
    MMULTISCRIPTS "mmultiscripts", MN "mn", MO "mo", MOVER "mover", MPADDED "mpadded",
    MPHANTOM "mphantom", MPRESCRIPTS "mprescripts", MROOT "mroot", MROW "mrow", MS "ms",
    MSPACE "mspace", MSQRT "msqrt", MSTYLE "mstyle", MSUB "msub", MSUBSUP "msubsup", MSUP "msup",
    MTABLE "mtable", MTD "mtd", MTEXT "mtext", MTR "mtr", MUNDER "munder",
    MUNDEROVER "munderover", SEMANTICS "semantics", ANIMATE "animate", CIRCLE "circle",
    DEFS "defs", DESC "desc", ELLIPSE "ellipse", FILTER "filter", G "g", LINE "line",
    MARKER "marker", MASK "mask", METADATA "metadata", MPATH "mpath", PATH "path",
    PATTERN "pattern", POLYGON "polygon", POLYLINE "polyline", RECT "rect", SET "set",
    STOP "stop", SWITCH "switch", SYMBOL "symbol", TEXT "text", TSPAN "tspan", USE "use",
    VIEW "view",
    // Attributes.
    ACCEPT "accept", ACCEPT_CHARSET "accept-charset", ACCESSKEY "accesskey", ACTION "action",
    ALIGN "align", ALINK "alink", ALLOW "allow", ALLOWFULLSCREEN "allowfullscreen", ALT "alt",
    ARCHIVE "archive", ARIA_CHECKED "aria-checked", ARIA_CONTROLS "aria-controls",
    ARIA_CURRENT "aria-current", ARIA_DESCRIBEDBY "aria-describedby",
    ARIA_DISABLED "aria-disabled", ARIA_EXPANDED "aria-expanded", ARIA_HASPOPUP "aria-haspopup",
    ARIA_HIDDEN "aria-hidden", ARIA_LABEL "aria-label", ARIA_LABELLEDBY "aria-labelledby",
    ARIA_LEVEL "aria-level", ARIA_LIVE "aria-live", ARIA_MODAL "aria-modal",
    ARIA_PRESSED "aria-pressed", ARIA_REQUIRED "aria-required", ARIA_SELECTED "aria-selected",
    AS "as", ASYNC "async", AUTOCAPITALIZE "autocapitalize", AUTOCOMPLETE "autocomplete",
    AUTOFOCUS "autofocus", AUTOPLAY "autoplay", AXIS "axis", BACKGROUND "background",
    BGCOLOR "bgcolor", BORDER "border", BORDERCOLOR "bordercolor", CELLPADDING "cellpadding",
    CELLSPACING "cellspacing", CHAR "char", CHAROFF "charoff", CHARSET "charset",
    CHECKED "checked", CLASS "class", CLASSID "classid", CLEAR "clear", CODEBASE "codebase",
    CODETYPE "codetype", COLOR "color", COLS "cols", COLSPAN "colspan", COMPACT "compact",
    CONTENTEDITABLE "contenteditable", CONTROLS "controls", COORDS "coords",
    CROSSORIGIN "crossorigin", CX "cx", CY "cy", D "d", DATA_ACTION "data-action",
    DATA_DISMISS "data-dismiss", DATA_HREF "data-href", DATA_ID "data-id",
    DATA_INDEX "data-index", DATA_KEY "data-key", DATA_NAME "data-name", DATA_SRC "data-src",
    DATA_SRCSET "data-srcset", DATA_TARGET "data-target", DATA_TEXT "data-text",
    DATA_TITLE "data-title", DATA_TOGGLE "data-toggle", DATA_TYPE "data-type",
    DATA_URL "data-url", DATA_VALUE "data-value", DATE "date", DATETIME "datetime",
    DECLARE "declare", DECODING "decoding", DEFAULT "default", DEFER "defer",
    DEFINITIONURL "definitionurl", DIRNAME "dirname", DISABLED "disabled", DOWNLOAD "download",
    DRAGGABLE "draggable", DX "dx", DY "dy", ENCODING "encoding", ENCTYPE "enctype",
    ENTERKEYHINT "enterkeyhint", EVENT "event", EXPORTPARTS "exportparts", FACE "face",
    FETCHPRIORITY "fetchpriority", FILL "fill", FILL_OPACITY "fill-opacity",
    FILL_RULE "fill-rule", FR "fr", FOR "for", FORMACTION "formaction", FORMENCTYPE "formenctype",
    FORMMETHOD "formmethod", FORMNOVALIDATE "formnovalidate", FORMTARGET "formtarget",
    FRAMEBORDER "frameborder", FX "fx", FY "fy", HEADERS "headers", HEIGHT "height",
    HIDDEN "hidden", HIGH "high", HREF "href", HREFLANG "hreflang", HSPACE "hspace",
    HTTP_EQUIV "http-equiv", ID "id", IMAGESIZES "imagesizes", IMAGESRCSET "imagesrcset", IN "in",
    INERT "inert", INPUTMODE "inputmode", INTEGRITY "integrity", IS "is", ISMAP "ismap",
    ITEMID "itemid", ITEMPROP "itemprop", ITEMREF "itemref", ITEMSCOPE "itemscope",
    ITEMTYPE "itemtype", KIND "kind", LANG "lang", LANGUAGE "language", LIST "list",
    LOADING "loading", LONGDESC "longdesc", LOOP "loop", LOW "low", LOWSRC "lowsrc",
    MARGINHEIGHT "marginheight", MARGINWIDTH "marginwidth", MAX "max", MAXLENGTH "maxlength",
    MEDIA "media", METHOD "method", MIN "min", MINLENGTH "minlength", MULTIPLE "multiple",
    MUTED "muted", NAME "name", NOHREF "nohref", NOMODULE "nomodule", NONCE "nonce",
    NORESIZE "noresize", NOSHADE "noshade", NOVALIDATE "novalidate", NOWRAP "nowrap",
    ONBLUR "onblur", ONCHANGE "onchange", ONCLICK "onclick", ONERROR "onerror", ONFOCUS "onfocus",
    ONINPUT "oninput", ONKEYDOWN "onkeydown", ONKEYUP "onkeyup", ONLOAD "onload",
    ONMOUSEDOWN "onmousedown", ONMOUSEOUT "onmouseout", ONMOUSEOVER "onmouseover",
    ONMOUSEUP "onmouseup", ONSUBMIT "onsubmit", OPACITY "opacity", OPEN "open", OPTIMUM "optimum",
    PART "part", PING "ping", PLACEHOLDER "placeholder", PLAYSINLINE "playsinline",
    POINTS "points", POPOVER "popover", POSTER "poster", PRELOAD "preload", PROFILE "profile",
    PROMPT "prompt", PROPERTY "property", R "r", READONLY "readonly",
    REFERRERPOLICY "referrerpolicy", REL "rel", REQUIRED "required", REV "rev",
    REVERSED "reversed", ROLE "role", ROWS "rows", ROWSPAN "rowspan", RULES "rules", RX "rx",
    RY "ry", SANDBOX "sandbox", SCHEME "scheme", SCOPE "scope", SCROLLING "scrolling",
    SELECTED "selected", SHAPE "shape", SIZE "size", SIZES "sizes", SPELLCHECK "spellcheck",
    SRC "src", SRCDOC "srcdoc", SRCLANG "srclang", SRCSET "srcset", STANDBY "standby",
    START "start", STEP "step", STROKE "stroke", STROKE_LINECAP "stroke-linecap",
    STROKE_WIDTH "stroke-width", TABINDEX "tabindex", TARGET "target", TRANSFORM "transform",
    TRANSLATE "translate", TYPE "type", TYPEMUSTMATCH "typemustmatch", USEMAP "usemap",
    VALIGN "valign", VALUE "value", VALUETYPE "valuetype", VERSION "version", VLINK "vlink",
    VSPACE "vspace", WIDTH "width", WRAP "wrap", X "x", X1 "x1", X2 "x2", Y "y", Y1 "y1", Y2 "y2",
    XLINK_HREF "xlink:href", XML_LANG "xml:lang", XML_SPACE "xml:space", XMLNS "xmlns",
    XMLNS_XLINK "xmlns:xlink", VOCAB "vocab", TYPEOF "typeof", ABOUT "about", RESOURCE "resource",
    PREFIX "prefix",
    ;
    // SVG: names of elements, then `glyphRef`, which is both, then names of attributes.
    "altglyph" "altGlyph", "altglyphdef" "altGlyphDef", "altglyphitem" "altGlyphItem",
    "animatecolor" "animateColor", "animatemotion" "animateMotion",
    "animatetransform" "animateTransform", "clippath" "clipPath", "feblend" "feBlend",
    "fecolormatrix" "feColorMatrix", "fecomponenttransfer" "feComponentTransfer",
    "fecomposite" "feComposite", "feconvolvematrix" "feConvolveMatrix",
    "fediffuselighting" "feDiffuseLighting", "fedisplacementmap" "feDisplacementMap",
    "fedistantlight" "feDistantLight", "fedropshadow" "feDropShadow", "feflood" "feFlood",
    "fefunca" "feFuncA", "fefuncb" "feFuncB", "fefuncg" "feFuncG", "fefuncr" "feFuncR",
    "fegaussianblur" "feGaussianBlur", "feimage" "feImage", "femerge" "feMerge",
    "femergenode" "feMergeNode", "femorphology" "feMorphology", "feoffset" "feOffset",
    "fepointlight" "fePointLight", "fespecularlighting" "feSpecularLighting",
    "fespotlight" "feSpotLight", "fetile" "feTile", "feturbulence" "feTurbulence",
    "foreignobject" "foreignObject", "lineargradient" "linearGradient",
    "radialgradient" "radialGradient", "textpath" "textPath", "glyphref" "glyphRef",
    "attributename" "attributeName", "attributetype" "attributeType",
    "basefrequency" "baseFrequency", "baseprofile" "baseProfile", "calcmode" "calcMode",
    "clippathunits" "clipPathUnits", "diffuseconstant" "diffuseConstant", "edgemode" "edgeMode",
    "filterunits" "filterUnits", "gradienttransform" "gradientTransform",
    "gradientunits" "gradientUnits", "kernelmatrix" "kernelMatrix",
    "kernelunitlength" "kernelUnitLength", "keypoints" "keyPoints", "keysplines" "keySplines",
    "keytimes" "keyTimes", "lengthadjust" "lengthAdjust", "limitingconeangle" "limitingConeAngle",
    "markerheight" "markerHeight", "markerunits" "markerUnits", "markerwidth" "markerWidth",
    "maskcontentunits" "maskContentUnits", "maskunits" "maskUnits", "numoctaves" "numOctaves",
    "pathlength" "pathLength", "patterncontentunits" "patternContentUnits",
    "patterntransform" "patternTransform", "patternunits" "patternUnits", "pointsatx" "pointsAtX",
    "pointsaty" "pointsAtY", "pointsatz" "pointsAtZ", "preservealpha" "preserveAlpha",
    "preserveaspectratio" "preserveAspectRatio", "primitiveunits" "primitiveUnits", "refx" "refX",
    "refy" "refY", "repeatcount" "repeatCount", "repeatdur" "repeatDur",
    "requiredextensions" "requiredExtensions", "requiredfeatures" "requiredFeatures",
    "specularconstant" "specularConstant", "specularexponent" "specularExponent",
    "spreadmethod" "spreadMethod", "startoffset" "startOffset", "stddeviation" "stdDeviation",
    "stitchtiles" "stitchTiles", "surfacescale" "surfaceScale", "systemlanguage" "systemLanguage",
    "tablevalues" "tableValues", "targetx" "targetX", "targety" "targetY",
    "textlength" "textLength", "viewbox" "viewBox", "viewtarget" "viewTarget",
    "xchannelselector" "xChannelSelector", "ychannelselector" "yChannelSelector",
    "zoomandpan" "zoomAndPan",
}
