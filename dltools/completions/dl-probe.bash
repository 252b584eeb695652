# bash completion for dl-probe

_dl_probe() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
    case $before in
        --format) COMPREPLY=($(compgen -W "auto table parquet arrow jsonl csv prom" -- "$word")); return ;;
        -o|--output) COMPREPLY=($(compgen -f -- "$word")); return ;;
        -i|--interval|-n|--count|--duration|--since|--window|--label|--name|--pattern) return ;;
    esac
    if [[ $word == -* ]]; then
        COMPREPLY=($(compgen -W "--interval --count --duration --since --window --label --name --pattern --output --format --verbose --version --help" -- "$word"))
    else
        COMPREPLY=($(compgen -f -- "$word"))
    fi
}
complete -o filenames -F _dl_probe dl-probe
