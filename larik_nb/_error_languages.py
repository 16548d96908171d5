"""What failures are called in other languages than English: words for `_error_rules`, no code.

Providers and gateways answer in the language of their country. A table a kind; within it the languages in the order
German, French, Spanish and Portuguese, Italian, Russian, Japanese, Korean. Simplified Chinese stands with the English
in `_error_rules`, for a third of the providers speak it; `SIMPLIFIED` brings traditional characters to it.
"""

from __future__ import annotations

BILLING = (
    "guthaben", "zahlung.{0,30}(?:erforderlich|fehlgeschlagen|überfällig)",
    "(?:soldes?|crédits?).{0,24}(?:insuffisant|épuisé|négatif|vide)", "paiement.{0,20}(?:requis|échoué|refusé)",
    "(?:saldo|cr[eé]ditos?|fondos|fundos).{0,24}(?:insuf|agotad|esgotad|negativ|acab)", r"recarg(?:ue|a|ar|ando)\b",
    "pago.{0,20}(?:requerido|rechazado)", "credito.{0,24}(?:insufficient|esaurit)",
    "недостаточно (?:средств|денег|баланс)", r"(?:баланс|средств)\w*.{0,24}(?:недостат|исчерп|законч|отриц|пополн)",
    "пополните", "残高", "(?:クレジット|料金|支払い?).{0,10}(?:不足|必要|未|失敗|切れ)", "チャージして",
    "잔액", "크레딧.{0,8}(?:부족|소진|없)", "결제.{0,8}(?:필요|실패)", "충전",
)  # fmt: skip
RATE = (
    r"(?:anfrage|raten|nutzungs)\w*.{0,10}(?:limit|begrenz|überschritten)", "zu viele anfragen", "kontingent",
    "trop de (?:requêtes|demandes)", "limite de (?:débit|requêtes|taux)",
    "demasiad[ao]s (?:solicitudes|peticiones)", "límite de (?:solicitudes|peticiones|uso|velocidad|tasa)",
    "muit[ao]s (?:solicitações|requisições|pedidos)", "limite de (?:taxa|requisições|solicitações|uso)",
    "troppe richieste", "limite di (?:richieste|frequenza|utilizzo)",
    r"(?:лимит|квот)\w*.{0,20}(?:запрос|исчерп|превыш)", "превыш.{0,20}(?:лимит|квот|частот)", "слишком (?:много|част)",
    "レート制限", "リクエスト.{0,10}(?:多すぎ|超|上限|制限)", "利用(?:上限|制限)", "上限に達",
    "요청.{0,12}(?:한도|초과|너무 많)", "속도 제한", "사용량.{0,8}(?:한도|초과)", "할당량",
)  # fmt: skip
DAY = (
    r"(?:täglich|wöchentlich|monatlich|pro (?:tag|woche|monat))", "(?:par (?:jour|semaine|mois)|quotidien|mensuel)",
    r"(?:diari|semanal|mensual|mensal|por (?:día|dia|semana|mes|mês))", "(?:дневн|суточн|месячн|в (?:день|сутки|месяц))",
    "(?:1日|日次|毎日|月間|今月|本日)", "(?:일일|하루|월간|이번 달)",
)  # fmt: skip
OVERFLOW = (
    r"(?:eingabe|kontext|prompt|nachricht|unterhaltung)\w*.{0,40}(?:zu (?:lang|groß)|überschr)",
    r"(?:contexte|entrée|prompt|messages?|conversation)\b.{0,40}(?:trop (?:long|grand|volumineu)|dépass)",
    r"(?:contexto|entrada|prompt|mensajes?|conversaci[oó]n|mensagem|mensagens|conversa)\b.{0,40}(?:demasiado larg|muy larg|supera|exced|muito long|longo demais|ultrapass)",
    r"(?:contesto|input|prompt|messaggi\w?|conversazione)\b.{0,40}(?:tropp[oa] lung|supera|ecced)",
    r"(?:контекст|промпт|сообщени|ввод|токен|запрос|текст)\w*.{0,30}(?:слишком (?:длин|больш)|превыша|превыс|превышен)",
    "(?:入力|プロンプト|コンテキスト|トークン|会話|メッセージ).{0,16}(?:長すぎ|長過ぎ|超え|超過|大きすぎ|上限)",
    "(?:입력|프롬프트|컨텍스트|토큰|대화|메시지).{0,16}(?:깁니다|길어|깁|초과|너무 (?:길|긴|많|크|큽))",
)  # fmt: skip
#: Things other than the conversation that may be too long or too large.
NOT_PROMPT = (
    r"\bbild", "datei", r"\bimage", "fichier", "imagen", "archivo", "arquivo", "immagin", "изображен", "файл",
    "画像", "ファイル", "이미지", "파일",
)  # fmt: skip
OVERLOADED = (
    "überlast", "ausgelastet", "vorübergehend nicht", "surcharg", "indisponible", "temporairement",
    "sobrecarg", "sobrecarreg", "temporalmente", "temporariamente", "sovraccaric", "temporaneamente",
    "перегруж", "временно недоступ", "混雑", "混み合って", "過負荷", "一時的に", "과부하", "혼잡", "일시적",
)  # fmt: skip
REFUSED = (
    "unangemessen", "inhaltsrichtlin", "inapproprié", "politique de contenu", "inapropiad", "inapropriad",
    "políticas? de (?:contenido|conteúdo|uso)", "inappropriat", r"наруша\w+.{0,30}(?:политик|правил)", "неприемлем",
    "不適切", "ポリシー違反", "부적절", "정책.{0,4}위반", "유해",
)  # fmt: skip
CREDENTIALS = (
    r"(?:schlüssel|token|anmeldedaten)\b.{0,24}(?:ungültig|abgelaufen|fehlt|falsch)",
    r"ungültige\w* .{0,16}(?:schlüssel|token)", "nicht autorisiert", "authentifizierung",
    "(?:clé|jeton).{0,24}(?:invalide|expiré|manquant|incorrect|non valide)", "non autorisé", "authentification",
    "(?:clave|chave|token).{0,24}(?:inválid|no válid|incorrect|incorret|caducad|expirad)",
    "n(?:o|ão) autorizad[oa]", "autenticaci[oó]n", "autenticação",
    "(?:chiave|token).{0,24}(?:non valid|scadut|errat)", "non autorizzato", "autenticazione",
    r"(?:ключ|токен)\w*.{0,24}(?:невер|недейств|истек|истёк|отсутств)", r"(?:неверн|недейств)\w* .{0,12}(?:ключ|токен)",
    "не авториз", "авторизац", "(?:キー|トークン|認証).{0,12}(?:無効|失敗|エラー|期限|正しくありません)",
    "(?:키|토큰|인증).{0,12}(?:유효하지|잘못|실패|만료)",
)  # fmt: skip
NOT_FOUND = (
    r"modell\b.{0,60}(?:nicht (?:gefunden|verfügbar|unterstützt)|existiert nicht|unbekannt)",
    "mod[eè]le.{0,60}(?:introuvable|n.?existe pas|pas (?:trouvé|disponible)|non (?:trouvé|pris en charge)|inconnu)",
    r"model[oa]\b.{0,60}(?:(?:no|não) (?:existe|se encontr\w+|encontrad[oa]|disponible|disponível|está disponible)|desconocid|non (?:esiste|trovato|disponibile))",
    r"модел\w*.{0,40}(?:не (?:найден|существ|поддерж)|недоступн|неизвестн)",
    "モデル.{0,24}(?:存在しません|見つかりません|利用できません|サポートされていません)",
    "모델.{0,24}(?:존재하지|찾을 수 없|지원되지|없습니다)",
)  # fmt: skip
PERMISSION = (
    "zugriff (?:verweigert|nicht)", "keine berechtigung", "accès (?:refusé|interdit)",
    "acceso denegado", "acesso negado", "(?:sin|sem|no tiene|não tem) permis", "accesso negato",
    "доступ (?:запрещ|закрыт)", "нет (?:доступа|прав)", "権限", "許可されて", "アクセス.{0,4}拒否",
    "권한", "접근.{0,6}거부", "허용되지",
)  # fmt: skip

#: Traditional characters of the words that rules know, and the simplified ones.
SIMPLIFIED = str.maketrans(
    "輸過長對話訊內數據額餘錢費單賬帳戶請頻繁調試後護維載負滿併發權無錯誤鑰認證證號碼資審規違不存檔圖類網絡務伺縮減壓讀檢驗",
    "输过长对话讯内数据额余钱费单账账户请频繁调试后护维载负满并发权无错误钥认证证号码资审规违不存档图类网络务伺缩减压读检验",
)
