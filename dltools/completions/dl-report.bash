# bash completion for dl-report

_dl_report() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
    case $before in
        --plot) COMPREPLY=($(compgen -W "compare gantt limits progress cdf satisfied" -- "$word")); return ;;
        --format) COMPREPLY=($(compgen -W "auto table markdown csv jsonl html svg png" -- "$word")); return ;;
        --baseline|--scale|--title) return ;;
    esac
    if [[ $word == -* ]]; then
        COMPREPLY=($(compgen -W "--baseline --jobs --plot --output --format --scale --title --version --help" -- "$word"))
    else
        COMPREPLY=($(compgen -f -- "$word"))
    fi
}
complete -o filenames -F _dl_report dl-report
