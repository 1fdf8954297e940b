"""文字コードの自動判定。今は呼び出し元なし。"""

CANDIDATES = ("utf-8", "euc_jp", "shift_jis")


def guess(data: bytes) -> str:
    for name in CANDIDATES:
        try:
            data.decode(name)
        except UnicodeDecodeError:
            continue
        return name
    return "shift_jis"
