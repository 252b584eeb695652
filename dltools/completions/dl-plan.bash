# bash completion for dl-plan

_dl_plan() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
    case $before in
        -p|--policy) COMPREPLY=($(compgen -W "flowcon tradl dqoes specon noop fair las slaq srtf" -- "$word")); return ;;
        --realize) COMPREPLY=($(compgen -W "auto quota weight priority rotate cores" -- "$word")); return ;;
        --set) COMPREPLY=($(compgen -W "alpha= itval= backoff= itval_max= signed=" -- "$word")); compopt -o nospace; return ;;
        --params|--state|--save-state) COMPREPLY=($(compgen -f -- "$word")); return ;;
    esac
    if [[ $word == -* ]]; then
        COMPREPLY=($(compgen -W "--policy --set --params --realize --quantum --targets --state --save-state --every --explain --policies --verbose --version --help" -- "$word"))
    else
        COMPREPLY=($(compgen -f -- "$word"))
    fi
}
complete -o filenames -F _dl_plan dl-plan
