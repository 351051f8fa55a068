# Writes passwords that do not exist yet: generate-passwords.sh FOLDER. compose.yaml runs it as root.
#
# The owners are the users of the images: 999 in postgres, 10001 in shredway, 472 in grafana.
umask 077
cd "$1"

generate() { # generate NAME OWNER MODE
  if [ ! -s "$1" ]; then
    od -A n -t x1 -N 24 /dev/urandom | tr -d ' \n' > "$1.new"
    chown "$2" "$1.new"
    chmod "$3" "$1.new"
    mv "$1.new" "$1"
  fi
}

generate postgres 10001:999 0440
generate grafana 472:0 0400
chmod 0711 .
