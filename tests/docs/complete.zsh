# Print what zsh offers for a command line, each in <>: zsh -f complete.zsh DIRECTORY LINE
zmodload zsh/zpty
zpty z zsh -f -i
wait_for() { local seen; zpty -r -m z seen "*$1*"; print -r -- "$seen" }
zpty -w z "fpath=($1 \$fpath); autoload -U compinit; compinit -u -D"
zpty -w z 'compadd() { local -a found; builtin compadd -O found "$@"; (( $#found )) && print -r -- "<"$^found">"; builtin compadd "$@" }'
zpty -w z "PS1=RE''ADY"
wait_for READY >/dev/null
zpty -w -n z "$2"$'\t\x15'
zpty -w z "print DO''NE"
wait_for DONE
zpty -d z
