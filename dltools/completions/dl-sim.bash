# bash completion for dl-sim

_dl_sim() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
    case $before in
        -p|--policy) COMPREPLY=($(compgen -W "flowcon tradl dqoes specon noop fair las slaq srtf" -- "$word")); return ;;
        --realize) COMPREPLY=($(compgen -W "auto quota weight priority rotate cores" -- "$word")); return ;;
        --trace) COMPREPLY=($(compgen -W "gavel: pollux: philly: alibaba:" -- "$word")); compopt -o nospace; return ;;
        --generate) COMPREPLY=($(compgen -W "fixed: random: poisson: burst:" -- "$word")); compopt -o nospace; return ;;
        --best) COMPREPLY=($(compgen -W "mean_completion makespan time_to_target satisfied" -- "$word")); return ;;
        --from|--throughputs|--hosts|-o|--output) COMPREPLY=($(compgen -f -- "$word")); return ;;
        --format) COMPREPLY=($(compgen -W "auto table jsonl csv" -- "$word")); return ;;
    esac
    if [[ $word == -* ]]; then
        COMPREPLY=($(compgen -W "--policy --set --realize --clairvoyant --from --trace --throughputs --hosts --best --generate --gap --cpus --nodes --seed --repeat --spin --output --interval --jobs --format --version --help" -- "$word"))
    else
        COMPREPLY=($(compgen -f -- "$word"))
    fi
}
complete -o filenames -F _dl_sim dl-sim
