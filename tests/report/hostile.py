"""Two hundred strings that have no good reason to be in a dataset."""

from itertools import product

BREAKERS = [
    "",
    "</script>",
    "</style></title>",
    "\"'>",
    "-->",
    "]]>",
    "</pre></table>",
    "\\u003c/script\\u003e",
    "\u2028\u2029",
    "\x1b[31m\x1b]0;owned\x07",
]
PAYLOADS = [
    "<script>window.hacked=1</script>",
    "<img src=x onerror=window.hacked=1>",
    "<svg onload=window.hacked=1>",
    "<iframe src=javascript:window.top.hacked=1>",
    "javascript:window.hacked=1",
    "' onmouseover='window.hacked=1",
    '" autofocus onfocus="window.hacked=1',
    "<!--",
    "<![CDATA[",
    "{{ 7 * 7 }}{% raw %}",
    "${window.hacked=1}`",
    "<base href=http://evil.test/><link rel=stylesheet href=http://evil.test/x.css>",
    "<meta http-equiv=refresh content='0;url=http://evil.test/'>",
    '=HYPERLINK("http://evil.test","x")',
    "@SUM(1+1)*cmd|' /C calc'!A0",
    "\x00\x01\x08\x7f\x9b31m\u202e\ufeff",
    "[x](javascript:window.hacked=1) ![y](http://evil.test/y.png)",
    "<body onload=window.hacked=1><style>@import 'http://evil.test/z.css';</style>",
    "$(window.hacked=1);`window.hacked=1`",
    "__proto__",
]
HOSTILE = [a + b for a, b in product(BREAKERS, PAYLOADS)]
assert len(HOSTILE) == len(set(HOSTILE)) == 200
