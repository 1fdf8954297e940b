#!/bin/sh
# 旧版切割脚本，risk 通道用到 2026-02-24 为止，之后由 logkeep 接管
# crontab: 0 12 * * * /opt/gateway/tools/rotate_old.sh risk
set -e
cd "$(dirname "$0")/../spool/$1"
STAMP=$(TZ=Asia/Shanghai date +%Y-%m-%d_%H%M)
mv "$1.log" "$1.$STAMP.log"
: > "$1.log"
