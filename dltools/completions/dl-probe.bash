# bash completion for dl-probe

_dl_probe() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
    case $before in
        --format) COMPREPLY=($(compgen -W "auto table parquet arrow jsonl csv prom" -- "$word")); return ;;
        -o|--output|--from-log) COMPREPLY=($(compgen -f -- "$word")); return ;;
        --compact|--state-dir) COMPREPLY=($(compgen -d -- "$word")); return ;;
        -i|--interval|-n|--count|--duration|--since|--window|--label|--name|--pattern|--metric|--start|--rotate|--patience) return ;;
    esac
    if [[ $word == -* ]]; then
        COMPREPLY=($(compgen -W "--interval --count --duration --since --window --label --name --pattern --metric --from-log --start --list-metrics --output --rotate --compact --patience --state-dir --format --verbose --version --help" -- "$word"))
    else
        COMPREPLY=($(compgen -f -- "$word"))
    fi
}
complete -o filenames -F _dl_probe dl-probe
