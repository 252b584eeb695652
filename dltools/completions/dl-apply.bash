# bash completion for dl-apply

_dl_apply() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
    case $before in
        --state-dir) COMPREPLY=($(compgen -d -- "$word")); return ;;
        --format) COMPREPLY=($(compgen -W "auto table jsonl" -- "$word")); return ;;
    esac
    if [[ $word == -* ]]; then
        COMPREPLY=($(compgen -W "--dry-run --offline --undo --status --restore --hold --patience --state-dir --format --verbose --version --help" -- "$word"))
    else
        COMPREPLY=($(compgen -f -- "$word"))
    fi
}
complete -o filenames -F _dl_apply dl-apply
