# SPDX-License-Identifier: Apache-2.0
# The digest files/v1, without fasttrack: bash files_v1.sh REVISION PATH...
set -euo pipefail
git ls-tree -r -z --full-tree "$1" -- "${@:2}" | while IFS= read -r -d '' entry; do
  path=${entry#*$'\t'}
  read -r mode type object <<<"${entry%%$'\t'*}"
  [[ $mode == 100* ]] || { echo "$path is no regular file" >&2; exit 1; }
  printf '%s %s %s\0' "$mode" "$(git cat-file blob "$object" | sha256sum | cut -c1-64)" "$path"
done | LC_ALL=C sort -z -k3 | sha256sum | cut -c1-64
