# bash completion for dl-sim

. "${BASH_SOURCE[0]%dl-sim*}dl-plan${BASH_SOURCE[0]##*dl-sim}"  # what they share

_dl_sim() {
    local text before prefix=
    _dltools_split
    case $before in
        -p|--policy) _dltools_reply flowcon tradl dqoes specon noop fair las slaq srtf; return ;;
        --realize) _dltools_reply auto quota weight priority rotate cores; return ;;
        --set)
            local policies
            policies=$(_dltools_policies)
            _dltools_reply $(_dltools_parameters ${policies:-flowcon tradl las slaq srtf})
            return ;;
        --trace) _dltools_reply gavel: pollux: philly: alibaba:; compopt -o nospace 2>/dev/null; return ;;
        --generate) _dltools_reply fixed: random: poisson: burst:; compopt -o nospace 2>/dev/null; return ;;
        --best) _dltools_reply mean_completion makespan time_to_target satisfied; return ;;
        --from|--throughputs|--hosts|-o|--output) COMPREPLY=($(compgen -f -- "$text")); return ;;
        --format) _dltools_reply auto table jsonl csv; return ;;
    esac
    if [[ $text == -* ]]; then
        _dltools_reply --policy --set --realize --clairvoyant --from --trace --throughputs --hosts --best --generate --gap --cpus --nodes --seed --repeat --spin --output --interval --jobs --format --version --help
    else
        COMPREPLY=($(compgen -f -- "$text"))
    fi
}
complete -o filenames -F _dl_sim dl-sim
