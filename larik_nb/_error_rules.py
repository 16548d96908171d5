"""What codes and sentences of failed answers mean: data for `_error_verdict`, no code.

Every text is reduced to a *phrase* before a rule sees it: lower case, CamelCase and snake_case
split into words, no addresses and no quotes. `ContextLengthExceeded`, `context_length_exceeded`
and "Context length exceeded" are one phrase, so a rule states a meaning once.

A rule is a list of patterns, any of which may match. `<window>` in a pattern stands for any of
`WORDS["window"]`. In each table the first rule that matches decides.
"""

from __future__ import annotations

from dataclasses import dataclass

from larik_nb import _error_languages as languages


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """A phrase that matches one of `patterns`, and none of `unless`, means `kind`.

    A rule equals itself only: to look one up must not cost a pass over its phrases.
    """

    kind: str
    patterns: tuple[str, ...]
    unless: tuple[str, ...] = ()


#: What several rules have in common.
WORDS: dict[str, tuple[str, ...]] = {
    "exceeds": (
        "exceed", "overflow", "surpass", "over the", "beyond", "above", "bigger than",
        "(?:longer|larger|greater|more|higher) than",
        "too (?:long|large|big|many|much)",
        "(?:does|do|did|will|can) ?n[o']?t fit",
        "cannot fit", "not enough (?:room|space)",
        "must (?:be|have) (?:less|fewer|smaller|shorter|at most|no more|<|below|under)",
        "must not",
        "cannot be (?:more|larger|greater|longer)",
        "cannot exceed", "should (?:be|not)", "reach", "at most", "up to", "reduc", "shorten", "truncat",
        "limited to", "is only", "out of", r"full\b", "run out", "hit", "no smaller than", ">", "<=",
        r"(?:but|however,?) (?:the|your|you|it|this)\b",
        "you (?:requested|sent|asked|provided|used)",
    ),
    "window": (
        "context (?:length|window|size|limit|capacity|space|budget|max)",
        "(?:length|size) of the context", r"(?:context|n ctx|num ctx)\b",
        "(?:max(?:imum)?|model|allowed|supported) (?:allowed |total |model |supported )?(?:context|sequence|seq|input|prompt|model|token) ?(?:context|sequence|input|prompt|token|tokens)? ?(?:len|length|size|limit|count|window)",
        r"max (?:model|seq|input|prompt|context) ?(?:len|length|tokens?)\b",
        "token (?:limit|window)", "kv cache", "sequence length",
    ),
    "day": (
        "per day", "per ?week", "per ?month", r"/ ?(?:day|week|month)\b", "by day", "per 86400", "daily",
        "weekly", "monthly", r"\b[rt]pd\b", "每[日天周月]", "[当今本][日天周月]", "[日月]限", "[日月]额度",
        "(?:for|of|in|your) (?:today|this (?:day|week|month|(?:billing )?(?:cycle|period)))", *languages.DAY,
    ),
    "minute": (
        "per ?min", "per ?sec", r"/ ?(?:min|sec|s\b)", r"\b[rt]p[ms]\b", r"\bqps\b", "每分钟", "每秒",
    ),
    "not prompt": (
        "images? (?:size|exceed|is too|too|dimension|count|url|file|width|height|resolution|pixel)",
        r"\d image",
        "(?:size|dimensions?|number|count) of (?:the )?images?",
        "audio", "video", r"\bpdf\b", r"\bfiles?\b", "pages", r"\burls?\b", "stop sequences?",
        "tool (?:name|description|call id)", "function name", r"\bname\b.{0,30}too long", "metadata", "schema",
        r"headers?\b", "embedding", "maximum number of items", "array too long", "string too long", "string above",
        "temperature", r"top [pk]\b", "logprobs", "logit bias", r"\bseed\b", "safety identifier", "user id",
        "budget tokens", "thinking budget", "reasoning tokens", "cache control", "number of tools", "too many tools",
        r"(?:array|list|name|title|url|key|\bid|label|value|description|enum|vector) (?:length|size)",
        r"(?:length|size) of (?:the )?(?:array|list|name|title|url|key|\bid|label|value|enum|vector)",
        "positive integer", "must be an? (?:valid )?(?:integer|number|int|float|bool|string|list|array|object|dict)",
        "tools? : max", "time ?out", "timed out", r"memory\b", "penalty", "cache key",
    ),
}  # fmt: skip

#: Money: overrules a code that speaks of rates, rights or bad arguments.
BILLING = Rule(
    "billing",
    (
        r"(?:insufficient|not enough|too low|negative|exhausted|no (?:remaining|more|available)|ran out|run out|out of|zero|empty|depleted|does ?n[o]?t have|lack|used up|without|need|requires?).{0,30}(?:balance|credits?\b|funds?\b|money|prepaid|prepayment)",
        "(?:balance|credits?|funds?|prepaid).{0,40}(?:insufficient|too low|exhausted|negative|depleted|used up|ran out|run out|empty|not enough|not sufficient|below|exceeded|expired)",
        "insufficient (?:user )?(?:balance|credit|fund)",
        r"free (?:tier|trial|quota|allowance)\b.{0,40}(?:exhausted|used up|ended|expired|run out)",
        "credit (?:balance|limit)", "exceeded .{0,30}credits", "included credits", "arrear", "overdue", "unpaid",
        "past (?:due|invoice)",
        "payment (?:is |has |was |method |account )*(?:required|fail|declin|due|overdue|missing|need|not)",
        "(?:failed|failure|missing|outstanding) (?:to pay|payments?|invoices?)",
        "spend(?:ing)? (?:limit|cap)",
        "budget (?:has been |is |was )?(?:exceeded|exhausted|reached|used)",
        r"(?:exceed|over)\w* .{0,20}budget", "hard limit",
        "billing (?:is |has |was |account |details )*(?:not |in)",
        "billing (?:hard limit|must|to be|disabled|required|issue|problem)",
        "(?:enable|enabling|set ?up|add|requires?|without|no active) (?:a )?billing",
        "billing to be enabled", "good standing", "extra usage", "recharge", "top ?up",
        "purchase (?:more |additional )?(?:credits|tokens)",
        "buy (?:more )?credits",
        r"(?:subscription|plan|package|trial|resource pack\w*) (?:has |is |was |have )*(?:expired|ended|inactive|not active|required|cancel)",
        "no (?:active )?(?:subscription|resource pack)",
        "suspended.{0,80}(?:billing|balance|pay|invoice|spend|recharge)",
        "(?:套餐|订阅).{0,12}(?:到期|过期|失效)", "欠费", "余额", "充值", "未付", "资源包", "账户.{0,6}不足", "费用",
        *languages.BILLING,
    ),
    unless=(
        "(?:context|thinking|reasoning|prompt) budget",
        "rate limit", "per minute", "free models per",
        "billing account (?:is )?(?:not found)$",
    ),
)  # fmt: skip

#: Limits over time. They win over words of size: "too many tokens, please wait".
RATE = Rule(
    "rate_limit",
    (
        "rate ?limit",
        "(?:tokens?|requests?|calls?|quer(?:y|ies)|messages?|prompts?|characters) (?:per|an?|each|/) ?(?:min|sec|hour|day|week|month)",
        r"\brate.{0,20}(?:exceed|limit|too)",
        "too many tokens.{0,40}(?:please wait|wait before|try again (?:later|in a))",
        "too many (?:concurrent |parallel |simultaneous )?(?:requests?|calls|connections)",
        "throttl",
        r"(?:exceed|limit|maximum|allow|up to|reach|quota|only).{0,80}(?:<minute>|<day>|per hour|hourly)",
        r"\b[rt]p[mdsh]\b", r"\bqps\b",
        r"concurren\w*.{0,50}(?:limit|exceed|reach|max|too|full)",
        "(?:limit|exceed|max|reach|too many|too much).{0,40}concurren",
        "requests? (?:limit|quota|frequency|rate)",
        "limit (?:requests|tokens|burst)", "burst", "too (?:fast|frequent|quick)", "frequen", "slow down",
        "request limit", "usage limit", "quota", "tokens? usage",
        "(?:hourly|daily|weekly|monthly).{0,30}(?:limit|cap|allowance)",
        r"(?:session|plan|usage|trial) .{0,20}(?:limit|cap)\b",
        "fair use", "请求.{0,8}(?:频|过多|过快|超限|上限)", "频率", "频繁", "限流", "流量限制", "流控", "限额", "使用.{0,4}上限", "限速", "并发", "速率",
        "配额", "额度", "用量", "次数.{0,6}(?:上限|超|用)",
        r"(?:run|ran|running) out of (?:\w+ ){0,2}(?:tokens|requests|messages|usage|prompts)\b.{0,40}(?:<day>|plan|upgrade|account)",
        *languages.RATE,
    ),
    unless=(
        "frequency.?penalty",
        r"(?:sampl\w*|frame|bit) ?rate",
    ),
)  # fmt: skip

#: Waiting words: a rate only where nothing else explains the refusal.
WAIT = Rule(
    "rate_limit",
    (
        "please wait", r"wait (?:a|before|for|until|\d)", r"(?:again|retry) (?:in|after) \d", "slow down",
        "too many tokens.{0,60}(?:wait|later)", "稍后", "等待",
    ),
)  # fmt: skip

#: A limit over time that is an allowance rather than a speed.
QUOTA = Rule(
    "quota",
    (
        "quota", "usage limit",
        r"(?:session|plan|usage|trial) .{0,20}(?:limit|cap)\b",
        "配额", "额度", "用量", "使用.{0,4}上限", "<day>",
    ),
)  # fmt: skip

#: A period longer than anybody waits; ...
LONG_PERIOD = Rule(
    "quota",
    (
        "<day>", r"limit: 0\b",
    ),
)  # fmt: skip

#: ... and a plan's allowance, unless it is told per minute.
PLAN = Rule(
    "quota",
    (
        "(?:session|plan|usage|trial) .{0,20}limit",
        "使用.{0,4}上限",
    ),
    unless=(
        "<minute>",
    ),
)  # fmt: skip

#: A period worth waiting for.
SHORT_PERIOD = Rule(
    "quota",
    (
        "<minute>",
    ),
)  # fmt: skip

#: The server has no room for anybody.
OVERLOADED = Rule(
    "overloaded",
    (
        "overload",
        r"(?:at|over|no|out of|insufficient|limited|exceed\w*|lack of) (?:available )?(?:service |server |compute |tier )?capacity",
        "capacity (?:is |has been |was )?(?:exceed|reach|limit|full|constraint|unavailable)",
        "(?:server|service|system|engine|model|worker|is|are|too|currently|instance)s? (?:is |are |currently |too |very )*busy",
        "(?:high|heavy) (?:traffic|demand|load|volume)",
        r"temporar\w* (?:unavailable|overloaded|out of service|down)",
        "(?:service|server|model|provider|engine|currently|is|backend) (?:is )?(?:currently |temporarily )?unavailable",
        "not (?:currently )?available (?:right now|at the moment)",
        "warming up", "cold start", "starting up",
        "still (?:loading|starting|being loaded)",
        "queue (?:is |size |length |limit )*(?:full|exceed|reach|limit|too)",
        "pending requests",
        "(?:total|worker|server) request limit",
        r"no (?:available|healthy|free|idle) (?:\w+ ){0,2}(?:server|worker|provider|instance|upstream|replica|slot|channel|backend|node|endpoint)",
        "unable to process your request",
        "slots? (?:are |is )?(?:busy|unavailable)",
        "no slot", "maintenance", "访问量", "流量.{0,4}[大高]", "繁忙", "(?:服务|系统|引擎|模型|线路|当前)器?.{0,4}忙", "过载", "负载", "拥挤", "忙碌", "暂不可用", "维护", "排队",
        *languages.OVERLOADED,
    ),
)  # fmt: skip

#: A local server that is still reading its model.
LOADING = Rule(
    "overloaded",
    (
        "loading (?:the )?model",
        "model .{0,40}(?:loading|warming|starting|not ready|being loaded|initiali)",
    ),
    unless=(
        "fail", "error", "crash", "stopped",
    ),
)  # fmt: skip

#: An asked output above the model's own maximum: a bad request unless the prompt is named too.
OUTPUT_CAP = Rule(
    "bad_request",
    (
        r"max (?:new |completion |output |generated |response )?tokens?\b",
        "max(?:imum)? (?:number of )?(?:output|completion|generated|new|response) tokens?",
        "maximum tokens you requested",
        "max(?:imum)? (?:output|completion|generation|response) (?:length|limit|size)",
        "num predict", "max length to generate", "completion tokens", "output (?:tokens|length|limit|size)",
    ),
    unless=(
        "prompt", r"\binputs?\b", "messages", "conversation", "history", "text input",
        "tokens in (?:the |your )?request", r"got -\d", "too small", "is negative",
        "(?:context|kv).{0,40}(?:reduce|shorten|full)", "would exceed .{0,30}(?:context|window)",
        r"max tokens (?:limit )?of \d+ (?:was |has been |is )?(?:exceeded|reached)",
        "(?:remaining|available) (?:context|window|space|room)", r"context (?:has|is|of|contains|with) \d",
        "decoder", "输入",
        "(?:max|maximum) (?:input|prompt|context)",
    ),
)  # fmt: skip

#: The prompt is longer than the window, the clearest shapes first.
OVERFLOW: tuple[Rule, ...] = (
    Rule(
        "context_overflow",
        (
            "(?:prompt|inputs?|messages|conversation|chat|context|history|request|text|query)(?: is| are| was| were| has| length| size| tokens?| context| body| payload){0,3} (?:far |much |way )?too (?:long|large|big|many)",
        ),
        unless=(
            "<not prompt>",
        ),
    ),
    Rule(
        "context_overflow",
        (
            "<window>.{0,160}<exceeds>", "<exceeds>.{0,120}<window>",
        ),
        unless=(
            "long context", "string too long", "images? (?:size|exceeds?|is too|too)", "temperature",
            "array too long", "positive integer",
            "must be an? (?:valid )?(?:integer|number|int|float|bool|string|list|array|object|dict)",
        ),
    ),
    Rule(
        "context_overflow",
        (
            r"(?:prompt|inputs?|messages?|context|conversation|history|request|query|text|body|content|payload|entity|sequence)\b.{0,40}(?:is|are|was|were|has|length|size|too|tokens?)\b.{0,40}(?:too (?:long|large|big|many)|exceed)",
        ),
        unless=(
            "<not prompt>",
        ),
    ),
    Rule(
        "context_overflow",
        (
            r"(?:prompt|inputs?|messages?|conversation|history|request|text|sequence|payload|context|length|tokens?|token count|size).{0,60}(?:exceed\w*|longer than|larger than|greater than|over|above|surpass\w*|more than|beyond).{0,60}(?:max|limit|allow|support|model|token|length|size|\d{3}|\d ?k\b)",
        ),
        unless=(
            "<not prompt>", "quota", "balance", r"\brate\b", "credits",
        ),
    ),
    Rule(
        "context_overflow",
        (
            r"(?:inputs?|prompt|tokens?|messages).{0,60}(?:must|should|can|cannot|may).{0,30}(?:less|fewer|<|at most|no more|shorter|smaller|exceed|longer|\[ ?[01] ?, ?\d).{0,30}(?:tokens?|length|context|char|\d{4})",
        ),
        unless=(
            "<not prompt>", "at least 1 (?:token|character)",
            r"input should (?:be|have|match)\b",  # of one field, as validators say it
        ),
    ),
    Rule(
        "context_overflow",
        (
            "(?:too many|too much) (?:(?:input|prompt|total|text) )*(?:tokens|bytes|characters)",
            "(?:conversation|chat|session|thread) (?:length )?limit",
            "max(?:imum)? (?:allowed )?(?:input|prompt|context) (?:characters|tokens|length|size) (?:is|was|of|:)",
            "tokens in (?:the |your )?(?:request|prompt|input|messages) (?:is |are )?(?:more|greater|larger) than",
            r"tokens? (?:count |limit |number )?(?:is |was |has been |have been )?(?:too (?:many|large|high)|exceed\w*|reached)",
            "token limit", "request too large", "payload too large", "content too large", "entity too large",
            "input too long", "prompt too long",
        ),
        unless=(
            "<not prompt>",
        ),
    ),
    Rule(
        "context_overflow",
        (
            "range of input length",
            r"\d (?:input |prompt )?tokens?,? (?:but|while|and|whereas) .{0,40}(?:limit|max|window|supports?|allows?|accepts?|handles?|takes?|at most|up to)\b.{0,30}\d",
            r"\d (?:input |prompt )?tokens?,? (?:but|while|and|whereas) .{0,30}(?:limit|max)",
            r"cannot truncate to \d+", r"window of \d+ (?:tokens )?(?:is |was |has been )?(?:exhausted|full|used up)",
            r"max tokens must be (?:at least|greater than|>=?|positive).{0,30}(?:got|given|was|is|found|received|:) ?-\d",
            "tokens? to keep from the (?:initial|first)",
            r"keep the first \d+ tokens", "max(?:imum)? length of (?:the |your )?(?:current )?(?:question|prompt|input|query|conversation|context)",
            r"max tokens (?:limit )?of \d+ (?:was |has been |is )?(?:exceeded|reached)",
        ),
    ),
    Rule(
        "context_overflow",
        (
            r"(?:reduce|shorten|decrease|trim|cut|smaller|shorter|fewer|truncate).{0,30}(?:prompt|inputs?\b|messages|conversation|context|history|document)",
            "(?:start|begin|open) a new (?:chat|conversation|thread)",
        ),
        unless=(
            "<not prompt>",
        ),
    ),
    Rule(
        "context_overflow",
        (
            r"\d+ (?:input |prompt |text )?tokens? ?(?:>|exceeds?|are more than|is more than) ?\d+",
        ),
        unless=(
            "<not prompt>",
        ),
    ),
    Rule(
        "context_overflow",
        (
            "(?:上下文|输入|prompt|input|context|message|提示词?|消息|内容|文本|请求|token|对话|总)s?.{0,16}(?:超出|超过|超长|过长|过大|太长|上限|不能超过|不得超过|大于)",
            "(?:超出|超过|大于).{0,12}(?:上下文|最大(?:输入|长度|token)|长度限制|token)",
            "(?:压缩|减少|缩短|精简|截断|清理|删减).{0,8}(?:上下文|输入|对话|消息|内容|历史|提示)",
            "(?:新建|开启|重新开始).{0,6}(?:对话|会话)",
        ),
        unless=(
            "图片", "图像", "文件", "频", "并发", "配额", "次数",
        ),
    ),
    Rule("context_overflow", languages.OVERFLOW, unless=languages.NOT_PROMPT),
)  # fmt: skip

#: A judgement on what was said.
REFUSED = Rule(
    "content_filter",
    (
        r"(?:content|usage|safety|responsible ai|acceptable use|moderation|cyber\w*) (?:management |moderation |safety )?(?:polic\w+|filter\w*|guidelines?|system|check|inspection|review|violation)",
        r"(?:prompt|inputs?|content|outputs?|requests?|responses?|text|messages?|completion|image|data|generation)\b.{0,60}(?:flagged|moderat|inappropriate|unsafe|harmful|sensitive|prohibited|objectionable|not safe|illegal content|offensive|guardrail)",
        "(?:flagged|inappropriate|unsafe|harmful|sensitive|prohibited|moderation|guardrail).{0,40}(?:content|prompt|input|output|text|data|words?|intervened|block)",
        "flagged (?:as|for|by)", "was flagged", "may contain inappropriate", "responsible ai",
        r"violat\w+ .{0,40}(?:polic|guideline|terms|safety)",
        "blocked (?:by|due to|because of) .{0,30}(?:safety|content|filter|guardrail|moderation)",
        "safety (?:reasons|filter|system|settings)",
        r"(?:content|prompt|inputs?|outputs?|requests?|messages?)\b.{0,40}\brisks?\b",
        r"\bhigh risk\b", r"(?:prompt|inputs?|content|outputs?|text|image)\b.{0,40}\bviolation",
        "违规", "敏感", "不安全", "安全审核", "内容审核", "不合规", "违反", "涉黄", "涉政",
        *languages.REFUSED,
    ),
    unless=(
        "data policy", "policy settings",
        r"(?:account|organi[sz]ation|project|user|workspace|team|api key)\b.{0,40}(?:disabled|suspended|banned|terminated|deactivated|blocked|restricted)",
    ),
)  # fmt: skip

#: The key itself is missing, wrong, old or revoked.
CREDENTIALS = Rule(
    "auth",
    (
        r"(?:invalid|incorrect|wrong|bad|missing|unknown|malformed|expired|revoked|not valid|no|without|empty|provide|specify|include|unrecognized|inactive|disabled|verify|check|find|found|need|requires?|recogni[sz]e|match|illegal|set|validate).{0,40}(?:api ?-?key|api ?-?token|access ?-?token|auth\w* ?-?token|bearer|credentials?|auth\w* (?:header|info|parameter|credential)|subscription key|security token|oauth|password|jwt|secret key|access key|session token|id token|signing key|login cookie|user token)",
        r"(?:api ?-?key|access ?-?token|token|credentials?|bearer|password|security token|auth\w* (?:header|token)|secret|signature we calculated|jwt|oauth|session|login|(?:access|secret|subscription|your|provided) key)\b.{0,50}(?:invalid|incorrect|is not|not (?:valid|found|provided|recogni[sz]ed|set|active|exist)|expired|revoked|missing|wrong|malformed|required|disabled|not match|(?:was|were) (?:not|refused|rejected)|does not|rejected|deleted|illegal|leaked|invalidated)",
        "unauthori[sz]ed", "unauthenticated", "not authenticated",
        r"(?:authentication|authorization|auth) (?:error|fail\w*|required|exception|is required|parameter|invalid|denied|not)",
        r"(?:could not|cannot|can not|failed to|unable to|fails?) (?:to )?(?:resolve auth\w*|authenticate|authori[sz]e|verify your identity)",
        "log ?in (?:fail|error)", "please (?:log|sign) ?in", "log ?in required", r"sign ?in\b",
        "must (?:be )?(?:log|sign|authenticat)",
        "鉴权", "认证失败", "未认证", "身份验证", "密钥", "令牌.{0,8}(?:无效|过期|错误|不正确|失效)", "(?:无效|错误)的?.{0,4}令牌",
        "api ?-?key.{0,6}(?:无效|错误|不正确|过期)", "未登录", *languages.CREDENTIALS,
    ),
    unless=(
        "unexpected token", "invalid token (?:at|in|id|index)", "token (?:at|in) position", "tokens? count",
        "special token", "stop token", "tool", "signature in thinking", "thought signature", "max tokens",
        "input tokens", "response format", "required parameter",
        "model .{0,60}(?:does not exist|not found|not exist)",
        "json",
    ),
)  # fmt: skip

#: What is not there is something that the request refers to: an earlier answer, a file, a cache.
REFERENCE = Rule(
    "bad_request",
    (
        r"\b(?:items?|(?:previous )?response|conversation|container|cached? ?contents?|thread|vector store|batch|upload|assistant|interaction|prompt (?:with id|id)|files? (?:object|with id|id\b|uri|named))\b.{0,80}(?:not (?:be )?found|n.?t exist|no longer (?:exists?|available)|(?:has |is )expired|not available)",
        "no such (?:file|item|response|conversation|container|cached? ?content|thread|vector store|batch|upload|assistant)",
    ),
    unless=(
        "deployment", "endpoint", "engine", r"\bmodels?\b", "page not found",
    ),
)  # fmt: skip

#: No such model, or nobody at this address.
NOT_FOUND = Rule(
    "not_found_model",
    (
        r"(?:model|deployment|engine|endpoint|checkpoint|adapter|lora|function|inference profile|publisher model)s?\b.{0,120}(?:not (?:be )?found|not (?:currently )?exist|n.?t exist|no such|unknown|decommission|deprecat\w+ (?:and|on)|has been (?:deprecated|retired|removed|disabled|shut|deleted|sunset)|was (?:removed|retired|deprecated|deleted|shut)|retired|end of life|no longer (?:available|supported|exist)|not deployed|not loaded|not served|not available|n.?t available|is unavailable in|inaccessible|is not supported|are not supported|not a valid|is not valid|is invalid|is not an? |unsupported|isn.?t supported|not running|not been pulled|try pulling|not recogni[sz]ed|not (?:currently )?hosted|not in the list|not support(?:ed)? for)",
        r"(?:unknown|invalid|no such|unsupported|unrecogni[sz]ed|nonexistent|cannot find|could not find|can.?t find|not find|failed to find|unable to find|does not support|no) (?:the )?(?:\w+ )?(?:requested )?(?:model|deployment|engine|endpoint)s?\b(?! (?:output|input|argument|parameter|config))",
        "no models? (?:is |are )?(?:loaded|found|available)",
        "no endpoints? (?:found|that|available)",
        "not a (?:chat|valid|known|supported) model",
        "invalid model", "page not found", "route not found", "not found: ?/", "cannot (?:post|get) /",
        "no route (?:matched|for)", "unknown (?:url|path|route|endpoint)", "no such (?:path|route)",
        "url .{0,40}not found", "path .{0,40}not found", "模型.{0,20}(?:不存在|未找到|不可用|已下线|下线|不支持)",
        "(?:不存在|未知|无效|没有找到)的?.{0,8}模型", *languages.NOT_FOUND,
    ),
    unless=(
        "model .{0,40}does not support (?!chat|generate|this (?:api|endpoint)|the .{0,20}(?:api|endpoint))",
        "permission .{0,60}denied", "no fallback model", "tool(?:s|_| )", "function call", "parameter", "argument", "response format",
        "temperature", "image", r"\bitem\b", "tokens",
    ),
)  # fmt: skip

#: A good key without the right.
PERMISSION = Rule(
    "permission",
    (
        "(?:is |are |be |was )?not (?:be )?(?:allowed|permitted|authori[sz]ed|entitled|eligible|enabled for|granted)",
        r"(?:do|does|did) ?n[o']?t have (?:\w+ ){0,3}(?:access|permission|right|scope|role|privilege)",
        "no (?:access|permission)",
        r"lacks? (?:the )?(?:\w+ )?(?:permission|access|scope|role)",
        "access (?:is |was |has been )?(?:denied|restricted|forbidden|not)",
        "denied access", r"\bforbidden", "permission",
        "insufficient (?:scope|privilege|permission|right)",
        "scope.{0,20}(?:insufficient|missing)", "(?:missing|required) .{0,10}scope",
        "(?:country|region|territory|location|jurisdiction).{0,40}(?:not |un|restrict|block|prohib)",
        "not (?:yet )?(?:available|supported) (?:in|for) (?:your|this) (?:country|region|location|territory|subscription|account|organi|project|plan|tier)",
        "unsupported (?:country|region)", "must be verified",
        "verify (?:your )?(?:organi[sz]ation|identity)",
        "verification required", "gated",
        "accept (?:the )?(?:terms|license|agreement|conditions)",
        "(?:request|waitlist|apply for) access",
        "not (?:been )?(?:enabled|activated|opened)",
        "has not been used in project",
        r"(?:service|api|account|organi[sz]ation|project|user|workspace|team|consumer)\b.{0,40}(?:disabled|suspended|deactivated|banned|blocked|terminated|locked|frozen|restricted)",
        r"\bip\b.{0,40}(?:not |block|ban|deny|denied|restrict|whitelist|allowlist)",
        "you have been blocked", "have been blocked", "attention required", "just a moment", "verify you are human",
        "security (?:check|policy)", "data policy", "无权", "没有权限", "权限不足", "未开放", "暂无.{0,8}权限", "禁止访问", "未开通", "封禁",
        "冻结", "不支持.{0,4}(?:地区|区域)", "实名", *languages.PERMISSION,
    ),
    unless=(
        "method not allowed",
        r"not (?:enabled|allowed|permitted) (?:for|on|with|by) (?:this |the )?models?\b",
        "not (?:allowed|permitted) (?:in|for|to be|with|when|as|here|by the schema)(?! (?:your|this) (?:country|region|account|organi|project|plan))",
        "not allowed to (?:be|have|set|contain)",
        r"(?:inputs?|fields?|propert\w+|parameters?|arguments?|keys?|values?) (?:is |are )not (?:allowed|permitted)",
        "extra inputs", "extraneous", "malformed",
    ),
)  # fmt: skip

#: A request refused for the reasoning of earlier answers: a signature that does not hold, sealed content that cannot be
#: read, an item without the one that belongs to it.
REASONING = Rule(
    "bad_request",
    (
        "signature", "encrypted content", r"\bthoughts?\b", "redacted thinking", "thinking blocks?",
        "reasoning (?:item|content|block|detail)", r"\btype reasoning", r"\brs [0-9a-z]{6}",
        "expected (?:an? )?thinking",
    ),
    unless=(
        "(?:function|method|tool|type) signature",
    ),
)  # fmt: skip

#: A request refused for something that is named. Where nothing is, a prompt near the window is a likely reason.
EXPLAINED = Rule(
    "bad_request",
    (
        r"\w\[\d+\]", r"\b(?:messages|input|contents|tools)\.\d", r"\b[a-z]{1,40}\.[a-z ]{1,40}: ",
        r"\b(?:param|field|key|argument|propert|option|schema|role|header|value)\w*\b", "required", "missing",
        "(?:not |un)support", "deprecat", "(?:must|should) (?:be|have|not|start|end|contain|match|alternate)", "expected",
        "unexpected", "unknown", "unrecogni[sz]ed", "not (?:a )?valid", "not (?:allowed|permitted|found)",
        "invalid (?!request|argument|input|prompt)", "tools?\b", "function", "images?\b", "json", "parse",
        "temperature", "top [pk]", "stream", "duplicate", "empty", "必填", "缺少", "参数", "不支持",
    ),
    unless=(
        "^(?:request contains an? )?(?:invalid request|invalid value|bad request|invalid argument)s?(?: error)?[.!]?$",
    ),
)  # fmt: skip

#: Somebody behind the server waited too long.
TIMEOUT = Rule(
    "timeout",
    (
        "time ?-?out", "timed out", "deadline exceeded", "deadline expired", "took too long", "超时",
    ),
)  # fmt: skip

#: The base URL rather than the model is wrong.
WRONG_ADDRESS = Rule(
    "not_found_model",
    (
        "^(?:404 )?(?:page |route )?not found[.!]?$",
        "page not found", "route not found", "cannot (?:post|get) /", "not found: ?/",
    ),
)  # fmt: skip

#: What a sentence means, in the order tried: rates win over sizes, a clear overflow over a busy
#: server (a gateway calls every failure "service unavailable"), a vague one does not.
TEXT: tuple[Rule, ...] = (
    BILLING, RATE, LOADING, OUTPUT_CAP, *OVERFLOW[:2], OVERLOADED, WAIT, *OVERFLOW[2:], REFUSED,
    CREDENTIALS, REFERENCE, NOT_FOUND, PERMISSION, TIMEOUT,
)  # fmt: skip

#: Kinds that a sentence may mean only where the status leaves it open. A 400 that mentions a
#: timeout speaks of the image it could not fetch, a 404 that says "wait" of a fresh deployment,
#: a 429 with vague words of size of a rate.
_OPEN = frozenset({200, 408, 409, 420, 424, 425, 429, 498, 499, *range(500, 600)})
STATUSES: dict[Rule, frozenset[int]] = {
    OVERLOADED: _OPEN,
    TIMEOUT: _OPEN - {429},
    **dict.fromkeys(OVERFLOW[2:], frozenset(range(1000)) - {429}),
    WAIT: frozenset({200, 400, 413, 420, 422, 429}),
}

#: Codes that decide on their own.
CODES: tuple[Rule, ...] = (
    Rule(
        "bad_request",
        (
            "unsupported (?:value|parameter|type)",
            "(?:array|integer|number|decimal) (?:above|below)",
            "string below",
            "invalid (?:image|type|value|json|schema|function|base64)",
            "tool use failed", "extra forbidden", "json validate", "image (?:too large|parse)",
            "missing required", "unknown parameter", "empty (?:array|string)", "previous response not found",
            "invalid encrypted content",
        ),
    ),
    Rule(
        "rate_limit",
        (
            "throttl", "rate ?limit", "rate quota", "too many requests", "limit (?:requests|tokens|burst|rate)",
            r"\b(?:rpm|tpm|qps|rps|tpd|rpd)\b", "burst", "concurren", "rate exceeded", "slow down",
            r"(?:over|exceed\w*) ?rate", "request ?limit", "rate ?limited", "(?:requests|frequency) limit",
        ),
    ),
    Rule(
        "context_overflow",
        (
            "context (?:length|window|size|limit|overflow|too)",
            r"(?:prompt|inputs?|request|payload|entity|content|messages?|body|context|conversation)s? (?:is |text |entity |length |tokens? |body )*(?:too (?:long|large|big|many)|exceed\w*|overflow|limit exceed\w*)",
            r"(?:max|maximum) (?:prompt|input|context) (?:tokens?|length|size)? ?exceed\w*",
            r"exceed\w* (?:\w+ )?(?:context|window|max(?:imum)? (?:input|prompt|context))",
            r"tokens? (?:limit|length|count)s? (?:reached|exceed\w*)",
            "(?:characters|tokens) too long", "too many (?:input )?tokens", r"length limit exceed\w*",
        ),
        unless=(
            "rate", "quota", "output", "completion", "image", "file", "audio", "finish",
        ),
    ),
    Rule(
        "content_filter",
        (
            "content (?:filter|policy|block|moderat|management|violation|safety|not allowed)",
            "responsible ai", "policy violation", "usage policy", "sensitive", "data inspection", "moderation",
            r"\bsafety", "prohibited content", "blocklist", "recitation", r"\bspii\b", "flagged", "guardrail",
            "unsafe", "image safety", "cyber policy", "risk control", "illegal content",
        ),
    ),
    Rule(
        "billing",
        (
            "arrear", "overdue", "billing", r"payment (?:required|fail\w*|method)",
            "insufficient (?:balance|credits?|funds?|account balance)",
            "credits? (?:balance|limit|exhaust|insufficient|exceed)",
            "balance (?:not|insufficient|low|exhaust)",
            "no (?:credits?|balance)", "spend(?:ing)? limit", "ramp limit", "prepaid", "free ?tier ?only",
            "budget exceeded", "unpurchased", "not purchased", "subscription (?:required|expired)",
        ),
    ),
    Rule(
        "quota",
        (
            "insufficient (?:user )?quota", "quota", "usage limit",
            "(?:daily|weekly|monthly|plan|account|session) .{0,12}limit",
            "exceeded current", "account limited",
        ),
    ),
    Rule(
        "auth",
        (
            r"(?:invalid|incorrect|wrong|missing|expired|bad|unknown|malformed|revoked|unrecogni[sz]ed|no|disabled|inactive|unsupported) (?:\w+ )?(?:api ?key|key|token|credentials?|authentication|auth\w*|client|login|password|jwt)\b",
            r"(?:api ?key|key|token|credentials?) (?:\w+ )?(?:invalid|incorrect|wrong|missing|expired|not (?:found|valid|provided)|disabled|revoked|required)",
            "unauthori[sz]ed", "unauthenticated", "authentication", r"^auth (?:error|fail\w*|required)",
            "auth failed", "expired token", "signature does not match", "incomplete signature", "login required",
            "no auth",
        ),
    ),
    Rule(
        "not_found_model",
        (
            r"(?:model|deployment|engine|endpoint)s? (?:\w+ )?(?:not (?:found|exist|supported|available|loaded|deployed|open)|does not exist|decommission\w*|deprecat\w*|retired|unavailable|removed)",
            r"(?:unknown|invalid|no such|unsupported|nonexistent) (?:model|deployment|endpoint|engine)\b",
            "resource not found", "no models", "end of life",
        ),
    ),
    Rule(
        "permission",
        (
            "permission", "access ?denied", "forbidden", "not (?:allowed|authori[sz]ed)",
            "unsupported (?:country|region)",
            "(?:service|account|api|project|organi[sz]ation|user|consumer)s? (?:is )?(?:disabled|suspended|deactivated|blocked|locked|banned|not (?:configured|active|enabled))",
            "operation denied", "scope insufficient", "access not configured", "access terminated",
            "user (?:blocked|banned)", "not enabled", "geo ?block", "location not",
        ),
    ),
    Rule(
        "timeout",
        (
            "time ?out", "timed out", "deadline exceeded",
        ),
    ),
    Rule(
        "overloaded",
        (
            "overload", r"queue (?:exceed\w*|full)", "capacity", "server busy", r"\bbusy\b", "not ready", "loading",
            "unavailable", "try again later", "engine overloaded", "resource contention", "no (?:available|healthy)",
        ),
    ),
)  # fmt: skip

#: Codes that name a class of failure only; sentences say more, and so does a status.
WEAK_CODES: tuple[Rule, ...] = (
    Rule(
        "not_found_model",
        (
            r"not ?found\b", r"no such\b",
        ),
    ),
    Rule(
        "server_error",
        (
            "internal", "server error", "api error", "upstream", "unknown", "backend",
            "provider (?:error|disconnected)", "connection error", "bad gateway", "incomplete generation",
            "generation error", "^generation$", "model (?:stream )?error", "service error", "stream error",
            "cancell?ed", "network error", "aborted", "engine", "data loss", "^error finish$",
        ),
    ),
    Rule(
        "bad_request",
        (
            "invalid", "bad request", "validation", "unprocessable", "malformed", "unsupported", "precondition",
            "missing", "out of range", "not implemented", "method not allowed", "type error", "value error",
            r"params?\b",
        ),
    ),
)  # fmt: skip

#: Google's word for both "slow down" and "come back tomorrow".
EXHAUSTED = r"resource (?:has been )?exhausted|resource exhausted"

#: Reasons to stop that are failures: the window is full, or the content was refused.
STOPS: tuple[Rule, ...] = (
    Rule(
        "context_overflow",
        (
            "context (?:window|length|size)", "window exceeded", "prompt too long",
        ),
    ),
    Rule(
        "content_filter",
        (
            "content ?filter", "safety", "prohibited", "blocklist", r"\bspii\b", "recitation", "sensitive", "refusal",
            "guardrail", "moderation", "language",
        ),
    ),
    Rule(
        "overloaded",
        (
            "overload", "insufficient .{0,10}resource", "capacity", r"\bbusy\b",
        ),
    ),
)  # fmt: skip

#: A reason to stop that says only that something failed; beside an error it says nothing.
FAILED_STOP = Rule(
    "server_error",
    (
        r"\berror\b", "fail(?:ed|ure)", "abort", "time ?out", "unavailable",
    ),
)  # fmt: skip

#: Numbers that mean something only in the room they stand in (an object's key, or a key's name).
BUSINESS_CODES: dict[str, dict[str, str]] = {
    "base_resp": {
        "1000": "server_error", "1001": "timeout", "1002": "rate_limit", "1004": "auth",
        "1008": "billing", "1013": "server_error", "1024": "server_error", "1026": "content_filter",
        "1027": "content_filter", "1033": "server_error", "1039": "context_overflow",
        "1041": "rate_limit", "1042": "bad_request", "2013": "bad_request", "2045": "rate_limit",
        "2049": "auth", "2056": "quota", "2061": "permission",
    },
    "error_code": {
        "1": "server_error", "2": "overloaded", "3": "not_found_model", "4": "rate_limit",
        "6": "permission", "13": "auth", "14": "auth", "15": "auth", "17": "quota",
        "18": "rate_limit", "19": "quota", "100": "auth", "110": "auth", "111": "auth",
        "336000": "server_error", "336001": "bad_request", "336002": "bad_request",
        "336003": "bad_request", "336004": "auth", "336005": "server_error",
        "336006": "bad_request", "336007": "context_overflow", "336100": "overloaded",
        "336103": "context_overflow", "336104": "content_filter", "336200": "server_error",
        "336501": "rate_limit", "336502": "rate_limit", "336503": "overloaded",
    },
    "errors": {
        "3007": "timeout", "3006": "context_overflow", "3036": "quota", "3039": "rate_limit",
        "3040": "overloaded", "5007": "not_found_model", "7009": "auth", "9109": "auth",
        "10000": "auth", "10001": "auth", "7003": "not_found_model",
    },
    "header": {
        "10007": "rate_limit", "10008": "overloaded", "10010": "overloaded",
        "10013": "content_filter", "10014": "content_filter", "10019": "content_filter",
        "10110": "overloaded", "10163": "bad_request", "10222": "server_error",
        "10907": "context_overflow", "11200": "permission", "11201": "quota",
        "11202": "rate_limit", "11203": "rate_limit",
    },
    "object": {},  # A dialect with its own numbers, whose types are words.
    "": {
        "1000": "auth", "1001": "auth", "1002": "auth", "1003": "auth", "1004": "auth",
        "1110": "permission", "1111": "auth", "1112": "permission", "1113": "billing",
        "1120": "overloaded", "1121": "permission", "1210": "bad_request",
        "1211": "not_found_model", "1212": "not_found_model", "1213": "bad_request",
        "1214": "bad_request", "1215": "bad_request", "1220": "permission",
        "1221": "not_found_model", "1222": "not_found_model", "1230": "server_error",
        "1234": "server_error", "1261": "context_overflow", "1300": "content_filter",
        "1301": "content_filter", "1302": "rate_limit", "1303": "rate_limit", "1304": "quota",
        "1305": "overloaded", "1308": "quota", "1309": "billing", "1310": "quota",
        "1311": "permission", "1312": "overloaded", "1313": "quota",
        "20012": "not_found_model", "20015": "bad_request", "30001": "billing",
        "50505": "overloaded",
    },
}  # fmt: skip
#: Gateways' own pages: `error code: 1015`.
EDGE_CODES: dict[str, str] = {
    "1003": "permission", "1006": "permission", "1007": "permission", "1008": "permission",
    "1009": "permission", "1010": "permission", "1012": "permission", "1013": "bad_request",
    "1015": "rate_limit", "1016": "server_error", "1020": "permission", "1027": "quota",
    "1033": "server_error", "1101": "server_error", "1102": "overloaded", "1200": "overloaded",
}  # fmt: skip

#: What a status means when nothing else does.
STATUS: dict[int, str] = {
    401: "auth", 402: "billing", 403: "permission", 404: "not_found_model", 407: "connection",
    408: "timeout", 410: "not_found_model", 413: "context_overflow", 420: "rate_limit",
    424: "server_error", 425: "overloaded", 429: "rate_limit", 451: "permission",
    498: "overloaded", 499: "server_error", 503: "overloaded", 504: "timeout", 522: "timeout",
    524: "timeout", 529: "overloaded", 561: "auth", 598: "timeout", 599: "timeout",
}  # fmt: skip
